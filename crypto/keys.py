"""Who is who: long-lived Ed25519 identities and short-lived X25519 session keys.

An identity is made once by an institution, and its public half is pinned by the others after a telephone call:
the fingerprint is short enough to read aloud. That is what stops an aggregator from inventing a party.
Session keys live for one epoch, so a stolen disk does not open old rounds.
"""

import base64
import binascii
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from crypto.derive import digest
from crypto.errors import Forged, Malformed
from crypto.framing import pack

PUBLIC_KEY_BYTES = 32
_TEXT_PREFIX = "ed25519:"
_FINGERPRINT_BYTES = 20  # 160 bits: 32 letters in eight groups


@dataclass(frozen=True)
class Identity:
    """The public half of an institution's identity: what the others pin."""

    public: bytes

    def __post_init__(self) -> None:
        if len(self.public) != PUBLIC_KEY_BYTES:
            raise Malformed(f"an identity has {PUBLIC_KEY_BYTES} bytes; copy the whole public key")

    def to_text(self) -> str:
        return _TEXT_PREFIX + base64.b64encode(self.public).decode()

    @classmethod
    def from_text(cls, text: str) -> "Identity":
        if not text.startswith(_TEXT_PREFIX):
            raise Malformed(f"an identity starts with {_TEXT_PREFIX!r}; copy the whole public key")
        try:
            return cls(base64.b64decode(text.removeprefix(_TEXT_PREFIX), validate=True))
        except (binascii.Error, ValueError):
            raise Malformed("an identity is not valid base64; copy the whole public key") from None

    def fingerprint(self) -> str:
        """Eight groups of four letters and digits: the one form in which keys are shown, on every page and screen."""
        letters = base64.b32encode(digest(pack("fingerprint", self.public))[:_FINGERPRINT_BYTES]).decode()
        return " ".join(letters[i : i + 4] for i in range(0, len(letters), 4))

    def verify(self, signature: bytes, message: bytes) -> None:
        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, message)
        except (InvalidSignature, ValueError):
            raise Forged("a signature does not match the pinned identity; nothing was accepted") from None


@dataclass(frozen=True)
class IdentityKey:
    """The private half. It never leaves the institution."""

    _private: Ed25519PrivateKey = field(repr=False)

    @classmethod
    def generate(cls) -> "IdentityKey":
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def from_bytes(cls, seed: bytes) -> "IdentityKey":
        if len(seed) != 32:
            raise Malformed("a private identity key has 32 bytes; restore it from its backup")
        return cls(Ed25519PrivateKey.from_private_bytes(seed))

    @classmethod
    def from_pem(cls, pem: bytes) -> "IdentityKey":
        try:
            private = serialization.load_pem_private_key(pem, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise Malformed("the identity key is not an unencrypted PEM private key") from None
        if not isinstance(private, Ed25519PrivateKey):
            raise Malformed("the identity key is not an Ed25519 key; make a new one")
        return cls(private)

    def to_bytes(self) -> bytes:
        return self._private.private_bytes_raw()

    def to_pem(self) -> bytes:
        return self._private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )

    @property
    def identity(self) -> Identity:
        return Identity(self._private.public_key().public_bytes_raw())

    def sign(self, message: bytes) -> bytes:
        return self._private.sign(message)


@dataclass(frozen=True)
class SessionKey:
    """A Diffie–Hellman key for one epoch."""

    _private: X25519PrivateKey = field(repr=False)

    @classmethod
    def generate(cls) -> "SessionKey":
        return cls(X25519PrivateKey.generate())

    @classmethod
    def from_bytes(cls, private: bytes) -> "SessionKey":
        if len(private) != 32:
            raise Malformed("a private session key has 32 bytes; start a new epoch")
        return cls(X25519PrivateKey.from_private_bytes(private))

    def to_bytes(self) -> bytes:
        return self._private.private_bytes_raw()

    @property
    def public(self) -> bytes:
        return self._private.public_key().public_bytes_raw()

    def agree(self, other_public: bytes) -> bytes:
        """The raw shared secret, only ever used as input to HKDF; points of low order are refused."""
        try:
            return self._private.exchange(X25519PublicKey.from_public_bytes(other_public))
        except ValueError:
            raise Malformed("a session key is not a usable X25519 point; its owner must make another") from None
