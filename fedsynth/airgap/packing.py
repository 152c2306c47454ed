"""Make a parcel: gather, list, sign, write."""

from __future__ import annotations

import datetime as dt
import hashlib
import io
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from crypto.keys import IdentityKey
from fedsynth.airgap.contents import CONTENTS, IMAGES, PATH, SIGNATURE, Contents, File, signed
from fedsynth.airgap.images import digests_in, save
from synth import VERSION
from synth.errors import InputError, OutputError

CHARTS = ("aggregator", "fed-node")
LEFT_OUT = ("__pycache__", ".DS_Store")


def make(out: Path, key: IdentityKey, images: Sequence[str], folders: Mapping[str, Path]) -> Contents:
    """`folders` holds charts, wheels, docs and sbom; manifests are rendered from the charts."""
    if out.exists():
        raise InputError(f"{out} exists already; choose another --out, or remove it first")
    with tempfile.TemporaryDirectory(dir=out.absolute().parent) as scratch:
        work = Path(scratch)
        files = {path: place for name, folder in folders.items() for path, place in _listed(name, folder).items()}
        files |= _manifests(folders["charts"], work)
        files[IMAGES] = work / "images.tar"
        save(images, files[IMAGES])
        contents = Contents(
            release=VERSION,
            made=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            images=digests_in(files[IMAGES], images),
            files={path: _described(files[path]) for path in sorted(files)},
        )
        _write(work / "parcel", contents.to_bytes(), key, files)
        (work / "parcel").rename(out)
    return contents


def _listed(name: str, folder: Path) -> dict[str, Path]:
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder} for the parcel's {name}; `make airgap` makes all of them")
    found = {f"{name}/{place.relative_to(folder)}": place for place in sorted(folder.rglob("*")) if place.is_file()}
    found = {path: place for path, place in found.items() if not set(place.parts) & set(LEFT_OUT)}
    if not found:
        raise InputError(f"the folder {folder} for the parcel's {name} is empty")
    if wrong := [path for path in found if not PATH.fullmatch(path) or found[path].is_symlink()]:
        raise InputError(f"{wrong[0]!r} cannot go into a parcel: plain files, names of letters, digits and @+_.- only")
    return found


def _manifests(charts: Path, work: Path) -> dict[str, Path]:
    """What each chart makes under its smallest values, for people who review it; no custom resources."""
    rendered = {}
    for chart in CHARTS:
        values = charts / chart / "lint-values" / "smallest.yaml"
        command = ["helm", "template", chart, str(charts / chart), "-f", str(values), "--kube-version", "1.25.0"]
        place = work / f"{chart}.yaml"
        place.write_bytes(_output(command))
        rendered[f"manifests/{chart}.yaml"] = place
    return rendered


def _output(command: list[str]) -> bytes:
    try:
        return subprocess.run(command, capture_output=True, check=True).stdout
    except FileNotFoundError:
        raise InputError(f"{command[0]} is not on PATH, and a parcel needs it") from None
    except subprocess.CalledProcessError as error:
        raise InputError(f"{' '.join(command[:2])} failed: {error.stderr.decode().strip()}") from None


def _described(path: Path) -> File:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return File(sha256=digest, bytes=path.stat().st_size)


def _write(out: Path, contents: bytes, key: IdentityKey, files: Mapping[str, Path]) -> None:
    """Members are named and sized, and of nobody: no owner, no time."""
    try:
        with tarfile.open(out, "w", format=tarfile.PAX_FORMAT) as archive:
            for name, content in ((CONTENTS, contents), (SIGNATURE, signed(contents, key))):
                archive.addfile(_member(name, len(content)), io.BytesIO(content))
            for name in sorted(files):
                with files[name].open("rb") as file:
                    archive.addfile(_member(name, os.fstat(file.fileno()).st_size), file)
    except OSError as error:
        raise OutputError(f"cannot write the parcel: {error.strerror}") from None


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o644
    return member
