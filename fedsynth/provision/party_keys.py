"""A party's two keys: the one its node connects with (Flower's, P-384) and the one it signs with (ours, Ed25519)."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from crypto.errors import CryptoError
from crypto.keys import Identity, IdentityKey
from synth.errors import InputError
from synth.messages.archive import write_durably

NODE_KEY, IDENTITY_KEY = "node.key", "identity.key"  # files, and keys of the Secret


@dataclass(frozen=True)
class PublicKeys:
    """What everybody may know of a party."""

    node_key: str  # ecdsa-sha2-nistp384 AAAA…
    identity: str  # ed25519:…

    def fingerprints(self) -> dict[str, str]:
        """Short enough to read aloud; the node's is what `ssh-keygen -lf` prints."""
        raw = base64.b64decode(self.node_key.split()[1])
        node = base64.b64encode(hashlib.sha256(raw).digest()).decode().rstrip("=")
        return {"identity": Identity.from_text(self.identity).fingerprint(), "node key": f"SHA256:{node}"}


@dataclass(frozen=True)
class PrivateKeys:
    """Both keys as the node reads them."""

    node_key: bytes  # OpenSSH
    identity: bytes  # PEM
    public: PublicKeys


def new_keys() -> PrivateKeys:
    node, identity = ec.generate_private_key(ec.SECP384R1()), IdentityKey.generate()
    private = node.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    return PrivateKeys(private, identity.to_pem(), _public(node, identity))


def own_keys(folder: Path) -> PrivateKeys:
    """The keys that a party keeps to itself, in its own folder. What is there is never replaced: others pinned it."""
    made = new_keys()
    for name, content in ((NODE_KEY, made.node_key), (IDENTITY_KEY, made.identity)):
        if not (folder / name).exists():
            write_durably(folder / name, content)
    try:
        files = (folder / NODE_KEY).read_bytes(), (folder / IDENTITY_KEY).read_bytes()
        node, identity = serialization.load_ssh_private_key(files[0], password=None), IdentityKey.from_pem(files[1])
    except (OSError, ValueError, UnsupportedAlgorithm, CryptoError) as error:
        raise InputError(f"a key in {folder} cannot be used: {error}. Move it away to get a new one.") from None
    if not isinstance(node, ec.EllipticCurvePrivateKey):
        raise InputError(f"{folder / NODE_KEY} is not an elliptic-curve key. Move it away to get a new one.")
    return PrivateKeys(*files, _public(node, identity))


def _public(node: ec.EllipticCurvePrivateKey, identity: IdentityKey) -> PublicKeys:
    text = node.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return PublicKeys(text.decode(), identity.identity.to_text())
