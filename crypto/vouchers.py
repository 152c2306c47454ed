"""A party vouches: "the message with this digest is mine, for this round and this purpose".

Masked vectors and ciphertexts are large and have no integrity of their own: one flipped bit opens to garbage
rather than failing. So the sender signs a digest. The aggregator checks it against the message; so do the parties
that open a sum of ciphertexts, and all check that every party of the round's list vouched for this very round.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from crypto.announcement import Roster
from crypto.derive import digest
from crypto.errors import Forged, Malformed, UnknownIdentity
from crypto.framing import pack, read_text, unpack
from crypto.keys import IdentityKey
from crypto.rounds import FEWEST_PARTIES, Round, require_exactly


@dataclass(frozen=True)
class Voucher:
    """A verified signature over the digest of one message."""

    moment: Round
    party: str
    payload_digest: bytes

    def require(self, payload: bytes) -> None:
        """Refuse a payload that is not, to the bit, what the party vouched for."""
        if digest(payload) != self.payload_digest:
            raise Forged(f"the message of {self.party!r} changed on its way; ask for it again")


def sealed_bytes(layout: str, sealed: bytes) -> bytes:
    """What a party vouches for when it seals an answer: the numbers and what they mean."""
    return pack("sealed", layout.encode(), sealed)


def vouch(key: IdentityKey, payload: bytes, *, party: str, moment: Round, purpose: str) -> bytes:
    body = pack("voucher", purpose.encode(), moment.to_bytes(), party.encode(), digest(payload))
    return pack("signed voucher", body, key.sign(body))


def verify_voucher(message: bytes, roster: Roster, *, moment: Round, purpose: str) -> Voucher:
    body, signature = unpack("signed voucher", message, 2)
    purpose_field, moment_field, party_field, payload_digest = unpack("voucher", body, 4)
    party = read_text(party_field)
    if party not in roster:
        raise UnknownIdentity("a voucher names a party that is not pinned here; compare fingerprints first")
    roster[party].verify(signature, body)
    if read_text(purpose_field) != purpose:
        raise Malformed(f"the voucher of {party!r} is for another purpose than {purpose!r}")
    Round.from_bytes(moment_field).require(moment)
    return Voucher(moment, party, payload_digest)


def verify_vouchers(
    messages: Iterable[bytes],
    roster: Roster,
    *,
    moment: Round,
    purpose: str,
    minimum: int = FEWEST_PARTIES,
) -> dict[str, Voucher]:
    """One verified voucher of each party of the round, by name."""
    verified = [verify_voucher(message, roster, moment=moment, purpose=purpose) for message in messages]
    require_exactly((each.party for each in verified), moment.parties, minimum)
    return {each.party: each for each in verified}
