"""What is in an image, as CycloneDX 1.5: its Debian packages and its Python distributions, each with a package URL.

    python images/sbom.py IMAGE > image.cdx.json

Read from the image's own files (dpkg's register, or the list that the edge carries; *.dist-info), not from what it was
meant to contain. Serial number and order follow from the content, so the same image gives the same document.
"""

from __future__ import annotations

import email
import hashlib
import json
import subprocess
import sys
import tarfile
import uuid
from collections.abc import Iterator
from typing import IO, Any

DPKG, EDGE = "var/lib/dpkg/status", "usr/share/sbom/packages"


def components(files: tarfile.TarFile) -> Iterator[dict[str, Any]]:
    for member in files:
        file = files.extractfile(member) if member.isreg() else None
        if file is None:
            continue
        name = member.name.removeprefix("./")
        if name == DPKG:
            yield from _from_dpkg(file)
        elif name == EDGE:
            for line in file.read().decode().splitlines():
                yield _debian(*line.split())
        elif name.endswith(".dist-info/METADATA"):
            about = email.message_from_bytes(file.read())
            yield _component(
                str(about["Name"]), str(about["Version"]), f"pkg:pypi/{str(about['Name']).lower().replace('_', '-')}"
            )


def _from_dpkg(file: IO[bytes]) -> Iterator[dict[str, Any]]:
    for paragraph in file.read().decode().split("\n\n"):
        about = email.message_from_string(paragraph)
        if about["Package"] and "installed" in str(about["Status"]).split():
            yield _debian(str(about["Package"]), str(about["Version"]), str(about["Architecture"]))


def _debian(name: str, version: str, architecture: str) -> dict[str, Any]:
    return _component(name, version, f"pkg:deb/debian/{name}", f"?arch={architecture}")


def _component(name: str, version: str, place: str, more: str = "") -> dict[str, Any]:
    url = f"{place}@{version.replace('+', '%2B')}{more}"
    return {"type": "library", "bom-ref": url, "name": name, "version": version, "purl": url}


def document(image: str, digest: str, found: list[dict[str, Any]]) -> dict[str, Any]:
    unique = sorted({each["purl"]: each for each in found}.values(), key=lambda each: str(each["purl"]))
    content = hashlib.sha256(json.dumps([digest, unique]).encode()).digest()[:16]
    subject = {"type": "container", "bom-ref": image, "name": image, "version": digest}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.UUID(bytes=content, version=5)}",
        "version": 1,
        "metadata": {"component": subject},
        "components": unique,
    }


def main() -> None:
    image = sys.argv[1]
    digest = _told("docker", "image", "inspect", "-f", "{{.Id}}", image)
    container = _told("docker", "create", image, "none")
    try:
        with subprocess.Popen(["docker", "export", container], stdout=subprocess.PIPE) as export:
            assert export.stdout is not None
            with tarfile.open(fileobj=export.stdout, mode="r|") as files:
                found = list(components(files))
    finally:
        _told("docker", "rm", container)
    sys.stdout.write(json.dumps(document(image, digest, found), indent=1) + "\n")


def _told(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
