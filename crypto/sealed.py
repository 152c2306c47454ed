"""A sealed box: one party writes to another through an aggregator that must not read or alter the letter.

Needed for the CKKS secret key, which belongs to the parties alone. A fresh X25519 key meets the recipient's
session key, HKDF gives a ChaCha20-Poly1305 key for this one box, and the sender signs the whole: the recipient
learns that the letter is secret, unaltered, meant for it, of this run and epoch, and from whom.
"""

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from crypto.announcement import Announcement, Roster
from crypto.derive import derive_key
from crypto.errors import Forged, UnknownIdentity
from crypto.framing import pack, unpack
from crypto.keys import IdentityKey, SessionKey

_NONCE = bytes(12)  # each box has a key of its own


def seal(plaintext: bytes, *, key: IdentityKey, sender: str, recipient: Announcement, purpose: str) -> bytes:
    ephemeral = SessionKey.generate()
    envelope = _envelope(ephemeral.public, sender, recipient, purpose)
    box_key = derive_key(ephemeral.agree(recipient.session_public), envelope)
    ciphertext = ChaCha20Poly1305(box_key).encrypt(_NONCE, plaintext, envelope)
    return pack("sealed box", ephemeral.public, ciphertext, key.sign(_signed(envelope, ciphertext)))


def unseal(
    box: bytes, *, session: SessionKey, recipient: Announcement, sender: str, roster: Roster, purpose: str
) -> bytes:
    """The letter, when it is from ``sender``; ``recipient`` is this party's own announcement."""
    if sender not in roster:
        raise UnknownIdentity(f"{sender!r} is not pinned here; compare fingerprints first")
    ephemeral_public, ciphertext, signature = unpack("sealed box", box, 3)
    envelope = _envelope(ephemeral_public, sender, recipient, purpose)
    roster[sender].verify(signature, _signed(envelope, ciphertext))
    box_key = derive_key(session.agree(ephemeral_public), envelope)
    try:
        return ChaCha20Poly1305(box_key).decrypt(_NONCE, ciphertext, envelope)
    except InvalidTag:
        raise Forged(f"a sealed box from {sender!r} does not open with this session key") from None


def _envelope(ephemeral_public: bytes, sender: str, recipient: Announcement, purpose: str) -> bytes:
    return pack("sealed envelope", ephemeral_public, sender.encode(), recipient.signed_bytes(), purpose.encode())


def _signed(envelope: bytes, ciphertext: bytes) -> bytes:
    return pack("sealed signature", envelope, ciphertext)
