"""Images as `docker save` writes them, and into an engine, a kind cluster or a registry."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedsynth.airgap.contents import Image, ParcelRefused
from synth.errors import FedsynthError, InputError

NAME = "io.containerd.image.name"  # how an index of images calls each
VALUES = {"aggregator": "aggregator", "edge": "aggregator", "node": "fed-node"}  # key of `images` to chart
REPOSITORIES = {"aggregator": "fedsynth/aggregator", "edge": "fedsynth/edge", "node": "fedsynth/fed-node"}


class EngineFailed(FedsynthError):
    code = "engine"
    exit_code = 8


def save(references: Sequence[str], out: Path) -> None:
    """In one file, in which images share their layers."""
    _run("docker", "save", "-o", str(out), *references)


def digests_in(path: Path, references: Sequence[str]) -> dict[str, Image]:
    """What each reference is in a saved file, by the content of its files and not by their names."""
    with tarfile.open(path, "r:") as archive:
        entries = _json(archive, "manifest.json")
        index = _json(archive, "index.json") if "index.json" in archive.getnames() else {"manifests": []}
        configs = {tag: _sha256(archive, entry["Config"]) for entry in entries for tag in entry["RepoTags"] or []}
    named = [(each["digest"], (each.get("annotations") or {}).get(NAME, "")) for each in index["manifests"]]
    manifests = {_tail(name): digest for digest, name in named}
    if missing := [each for each in references if each not in configs]:
        raise InputError(f"{', '.join(missing)} is not in what docker saved")
    return {each: Image(config=configs[each], manifest=manifests.get(_tail(each))) for each in references}


def load_into_docker(path: Path, images: Mapping[str, Image]) -> None:
    """And make sure that what the engine calls by these names is what was signed."""
    _run("docker", "load", "-i", str(path))
    for reference, image in images.items():
        found = _run("docker", "image", "inspect", "--format", "{{.Id}}", reference).strip()
        if found not in (image.config, image.manifest):
            raise ParcelRefused(
                f"{reference} is {found} in this engine, and not what was signed; remove it, load again"
            )


def load_into_kind(path: Path, cluster: str) -> None:
    _run("kind", "load", "image-archive", str(path), "--name", cluster)


def push(images: Mapping[str, Image], registry: str) -> dict[str, str]:
    """Tag and push what was loaded into docker; reference there by reference in the parcel, with its digest."""
    pushed = {}
    for reference in images:
        there = f"{registry.rstrip('/')}/{reference}"
        _run("docker", "tag", reference, there)
        _run("docker", "push", there)
        digests = json.loads(_run("docker", "image", "inspect", "--format", "{{json .RepoDigests}}", there))
        repository = there.rpartition(":")[0]
        found = [each for each in digests if each.startswith(f"{repository}@sha256:")]
        if not found:
            raise EngineFailed(f"docker pushed {there} and names no digest of it; look at the registry")
        pushed[reference] = found[0]
    return pushed


def values_of(images: Mapping[str, Image], pushed: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The `images` of each chart's values: digests of the registry, or what every node was given, pulled never."""
    values: dict[str, dict[str, Any]] = {chart: {"images": {}} for chart in set(VALUES.values())}
    for reference in images:
        repository, _, tag = reference.rpartition(":")
        for key, usual in REPOSITORIES.items():
            if repository != usual:
                continue
            there, _, digest = pushed.get(reference, repository).partition("@")
            chart = values[VALUES[key]]["images"]
            chart |= {"tag": tag, "pullPolicy": "IfNotPresent" if digest else "Never"}
            chart[key] = {"repository": there, "digest": digest}
    return {chart: content for chart, content in values.items() if content["images"]}


def _tail(reference: str) -> str:
    """docker writes docker.io/ before names that have no host."""
    return reference.removeprefix("docker.io/").removeprefix("library/")


def _json(archive: tarfile.TarFile, name: str) -> Any:
    return json.loads(_content(archive, name))


def _sha256(archive: tarfile.TarFile, name: str) -> str:
    return "sha256:" + hashlib.sha256(_content(archive, name)).hexdigest()


def _content(archive: tarfile.TarFile, name: str) -> bytes:
    try:
        file = archive.extractfile(name)
    except KeyError:
        file = None
    if file is None:
        raise InputError(f"what docker saved holds no {name}; a newer docker writes another form")
    return file.read()


def _run(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise EngineFailed(f"{command[0]} is not on PATH; install it, or leave that step out") from None
    if done.returncode != 0:
        raise EngineFailed(f"{' '.join(command[:3])} failed: {' '.join(done.stderr.split())[:500]}")
    return done.stdout
