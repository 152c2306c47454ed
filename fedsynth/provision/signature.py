"""A kit's signature: which files it consists of, what is in each, whom it is for, and that the federation says so."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from pydantic import Field, ValidationError

from crypto.errors import CryptoError
from crypto.framing import pack
from crypto.keys import Identity, IdentityKey
from fedsynth.provision.errors import KitRefused
from synth.schema import Strict

SIGNATURE = "signature.json"


class KitSignature(Strict):
    """The content of signature.json."""

    federation: str = Field(description="Name of the federation.")
    party: str = Field(description="Whom the kit is for.")
    files: dict[str, str] = Field(description="File to SHA-256 of its content.")
    signature: str = Field(description="Ed25519 by the federation's key, hexadecimal.")


def signed(files: Mapping[str, bytes], federation: str, party: str, key: IdentityKey) -> str:
    """The text of signature.json."""
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())}
    signature = key.sign(_message(digests, federation, party)).hex()
    return KitSignature(federation=federation, party=party, files=digests, signature=signature).model_dump_json(
        indent=2
    )


def verify(text: bytes, files: Mapping[str, bytes], federation: str, party: str, key: str) -> None:
    """Refuse files that the holder of this key did not sign, all of them and no others, for this party."""
    try:
        found = KitSignature.model_validate_json(text)
        digests = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())}
        Identity.from_text(key).verify(bytes.fromhex(found.signature), _message(digests, federation, party))
    except (ValidationError, ValueError, CryptoError):
        raise KitRefused(
            "the kit is not what the federation signed: a file was changed, added, taken away, or is another party's. "
            "Nothing was installed; ask the operator for the kit again, over a channel you trust."
        ) from None


def _message(digests: Mapping[str, str], federation: str, party: str) -> bytes:
    content = json.dumps(dict(sorted(digests.items())), separators=(",", ":"))
    return pack("kit of a party", federation.encode(), party.encode(), content.encode())
