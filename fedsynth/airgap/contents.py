"""What a parcel consists of: every file with its digest, every image with its digests, under one signature.

    contents.json       this list; the first member of the archive
    signature.json      who signed it, Ed25519; the second
    images/images.tar   what `docker save` wrote      charts/      both Helm charts, as folders
    wheels/             for `pip install --no-index`  manifests/   what the charts make, to be read by reviewers
    docs/  sbom/

Whoever opens a parcel pins the key: the federation's, which its kit holds and people compared, or that of whoever
releases the software. cosign and the public sigstore are not asked; neither can be reached from such a site.
"""

from __future__ import annotations

import re

from pydantic import Field, ValidationError, field_validator

from crypto.errors import CryptoError
from crypto.framing import pack
from crypto.keys import Identity, IdentityKey
from synth.errors import NotVerified
from synth.schema import Strict

CONTENTS, SIGNATURE, IMAGES = "contents.json", "signature.json", "images/images.tar"
FOLDERS = ("images", "charts", "wheels", "manifests", "docs", "sbom")
PATH = re.compile(rf"(?:{'|'.join(FOLDERS)})(?:/(?!\.{{1,2}}(?:/|$))[A-Za-z0-9@+_.-]+)+")
DIGEST, IMAGE_DIGEST = r"^[0-9a-f]{64}$", r"^sha256:[0-9a-f]{64}$"


class ParcelRefused(NotVerified):
    """Nothing of a parcel that is refused is used."""

    code = "parcel-refused"


class File(Strict):
    sha256: str = Field(pattern=DIGEST)
    bytes: int = Field(ge=0)


class Image(Strict):
    config: str = Field(pattern=IMAGE_DIGEST, description="Digest of its configuration: docker's image id.")
    manifest: str | None = Field(None, pattern=IMAGE_DIGEST, description="Digest of its manifest: containerd's.")


class Contents(Strict):
    """The content of contents.json."""

    release: str = Field(description="Version of fedsynth.")
    made: str = Field(description="When, UTC.")
    images: dict[str, Image] = Field(description="Reference to digests.")
    files: dict[str, File] = Field(description="Path in the parcel to its digest and size.")

    @field_validator("files")
    @classmethod
    def _inside(cls, files: dict[str, File]) -> dict[str, File]:
        if wrong := [path for path in files if not PATH.fullmatch(path)]:
            raise ValueError(f"{wrong[0]!r} is no place in a parcel")
        if IMAGES not in files:
            raise ValueError("it lists no images")
        return files

    def to_bytes(self) -> bytes:
        return self.model_dump_json(indent=1).encode()


class Signature(Strict):
    """The content of signature.json."""

    key: str = Field(description="Public key of who signed.")
    signature: str = Field(description="Ed25519 over contents.json, hexadecimal.")


def signed(contents: bytes, key: IdentityKey) -> bytes:
    signature = Signature(key=key.identity.to_text(), signature=key.sign(_message(contents)).hex())
    return signature.model_dump_json(indent=1).encode()


def verified(contents: bytes, signature: bytes, key: Identity) -> Contents:
    """The list, if the holder of this very key signed it."""
    try:
        found = Signature.model_validate_json(signature)
        key.verify(bytes.fromhex(found.signature), _message(contents))
        return Contents.model_validate_json(contents)
    except CryptoError:
        raise ParcelRefused(
            "the parcel is not signed by the key that you gave; get it again, or compare the key by telephone"
        ) from None
    except (ValidationError, ValueError) as error:
        raise ParcelRefused(
            f"the parcel's list or signature cannot be read: {' '.join(str(error).split())[:300]}"
        ) from None


def _message(contents: bytes) -> bytes:
    return pack("parcel for a site without a network", contents)
