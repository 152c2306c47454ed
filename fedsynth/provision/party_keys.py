"""A party's two keys: the one its node connects with (Flower's, P-384) and the one it signs with (ours, Ed25519)."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from crypto.keys import Identity, IdentityKey


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
    public = node.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    private = node.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    return PrivateKeys(private, identity.to_pem(), PublicKeys(public.decode(), identity.identity.to_text()))
