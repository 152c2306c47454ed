"""Are two builds of an image the same image? Its digest, with the time of building taken out.

    python images/normalise.py IMAGE [IMAGE]

A builder writes into an image when, and in which container, each layer was made. Everything else should follow from the
sources. This reads an image as `docker save` gives it, sets every time to SOURCE_DATE_EPOCH, forgets the builder's
container, and computes the digest of what is left; BuildKit can do the same while it builds (`rewrite-timestamp=true`).
With two images, says which files differ and ends with 1 if any does. With --out FILE, the first one is written there,
to be loaded, signed and pushed.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

EPOCH, EPOCH_TEXT = 1767225600, "2026-01-01T00:00:00Z"


@dataclass
class Normalised:
    """An image without its time: configuration, layers as files, and a digest of each file in them."""

    config: bytes
    layers: list[Path]
    tags: list[str]
    files: dict[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        return f"sha256:{hashlib.sha256(self.config).hexdigest()}"


def normalised(image: str, folder: Path) -> Normalised:
    saved = folder / "saved.tar"
    subprocess.run(["docker", "save", "-o", str(saved), image], check=True)
    layers: list[Path] = []
    files: dict[str, str] = {}
    with tarfile.open(saved) as archive:
        (manifest,) = json.loads(_read(archive, "manifest.json"))
        config = json.loads(_read(archive, manifest["Config"]))
        for number, name in enumerate(manifest["Layers"]):
            layer = archive.extractfile(name)
            assert layer is not None
            layers.append(folder / f"{number}.tar")
            with (
                tarfile.open(fileobj=layer) as before,
                tarfile.open(layers[-1], "w", format=tarfile.PAX_FORMAT) as after,
            ):
                files |= {f"{number}:{path}": digest for path, digest in _copied(before, after).items()}
    saved.unlink()
    return Normalised(_config_without_time(config, layers), layers, manifest["RepoTags"] or [image], files)


def _copied(before: tarfile.TarFile, after: tarfile.TarFile) -> dict[str, str]:
    """Every member with its time set; what each file is, by its digest."""
    found = {}
    for member in before:
        content = before.extractfile(member) if member.isreg() else None
        data = content.read() if content else b""
        member.mtime, member.pax_headers, member.uname, member.gname = EPOCH, _lasting(member.pax_headers), "", ""
        after.addfile(member, io.BytesIO(data) if content else None)
        kind = f"{member.type!r} {member.mode:o} {member.uid}:{member.gid} {member.linkname} "
        found[member.name] = hashlib.sha256(kind.encode() + data).hexdigest()
    return found


def _lasting(headers: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name not in ("mtime", "atime", "ctime")}


def _config_without_time(config: dict[str, Any], layers: list[Path]) -> bytes:
    for name in ("container", "container_config", "docker_version"):
        config.pop(name, None)
    config["config"].pop("Hostname", None)
    config["config"].pop("Image", None)
    config["created"] = EPOCH_TEXT
    for step in config.get("history", []):
        step["created"] = EPOCH_TEXT
        step.pop("created_by", None)  # names the builder's own intermediate images
    config["rootfs"]["diff_ids"] = [f"sha256:{_sha256(layer)}" for layer in layers]
    return json.dumps(config, sort_keys=True, separators=(",", ":")).encode()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None
    return file.read()


def write(image: Normalised, out: Path) -> None:
    """As `docker load` takes it."""
    name = f"{image.digest.removeprefix('sha256:')}.json"
    manifest = [{"Config": name, "RepoTags": image.tags, "Layers": [layer.name for layer in image.layers]}]
    with tarfile.open(out, "w") as archive:
        for path, content in ((name, image.config), ("manifest.json", json.dumps(manifest).encode())):
            member = tarfile.TarInfo(path)
            member.size, member.mtime = len(content), EPOCH
            archive.addfile(member, io.BytesIO(content))
        for layer in image.layers:
            archive.add(layer, layer.name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("images", nargs="+", metavar="IMAGE")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    found = []
    for image in arguments.images:
        with tempfile.TemporaryDirectory() as folder:
            found.append(normalised(image, Path(folder)))
            sys.stdout.write(f"{image}: {found[-1].digest}\n")
            if arguments.out and len(found) == 1:
                write(found[0], arguments.out)
    names = {name for image in found for name in image.files}
    for name in sorted(name for name in names if len({image.files.get(name) for image in found}) > 1)[:50]:
        sys.stdout.write(f"  differs: {name}\n")
    sys.exit(0 if len({image.digest for image in found}) == 1 else 1)


if __name__ == "__main__":
    main()
