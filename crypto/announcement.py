"""Admission: each party announces its session key for an epoch, signed by its pinned identity.

The aggregator only carries these messages. It cannot swap a key (the signature covers it), present an old one
(run, plan and epoch are signed) or invent a party (nobody pinned it); ``admit`` is run by every party for itself.
What a party attaches is signed with the key, so it can be neither changed nor left out on the way.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from crypto.errors import DuplicateParty, Malformed, UnknownIdentity
from crypto.framing import pack, read_text, unpack, unpack_all
from crypto.keys import PUBLIC_KEY_BYTES, Identity, IdentityKey, SessionKey
from crypto.rounds import FEWEST_PARTIES, KeyPeriod, require_exactly

_FEWEST_FIELDS, _MOST_FIELDS = 3, 4

Roster = Mapping[str, Identity]  # party name -> identity pinned out of band


@dataclass(frozen=True)
class Announcement:
    """A session key whose owner, run, plan and epoch have been verified."""

    period: KeyPeriod
    party: str
    session_public: bytes
    attached: bytes = b""  # what the party tells the others with its key; it means nothing here

    def signed_bytes(self) -> bytes:
        return pack("announcement", self.period.to_bytes(), self.party.encode(), self.session_public)


def announce(key: IdentityKey, session: SessionKey, *, period: KeyPeriod, party: str, attached: bytes = b"") -> bytes:
    fields = [period.to_bytes(), party.encode(), session.public, *([attached] if attached else [])]
    body = pack("announcement", *fields)
    return pack("signed announcement", body, key.sign(body))


def verify_announcement(message: bytes, roster: Roster, *, period: KeyPeriod) -> Announcement:
    body, signature = unpack("signed announcement", message, 2)
    fields = unpack_all("announcement", body, _MOST_FIELDS)
    if not _FEWEST_FIELDS <= len(fields) <= _MOST_FIELDS:
        raise Malformed("an announcement does not have the fields of one; its sender runs another version")
    period_field, party_field, session_public, *attached = fields
    party = read_text(party_field)
    if party not in roster:
        raise UnknownIdentity("an announcement names a party that is not pinned here; compare fingerprints first")
    roster[party].verify(signature, body)
    if len(session_public) != PUBLIC_KEY_BYTES:
        raise Malformed(f"the session key of {party!r} does not have {PUBLIC_KEY_BYTES} bytes")
    KeyPeriod.from_bytes(period_field).require(period)
    return Announcement(period, party, session_public, b"".join(attached))


def admit(
    messages: Iterable[bytes],
    roster: Roster,
    *,
    period: KeyPeriod,
    declared: Collection[str],
    minimum: int = FEWEST_PARTIES,
) -> dict[str, Announcement]:
    """The verified session keys of exactly the declared parties, by name."""
    verified = [verify_announcement(message, roster, period=period) for message in messages]
    require_exactly((each.party for each in verified), declared, minimum)
    if len({each.session_public for each in verified}) != len(verified):
        raise DuplicateParty("two parties announce the same session key; both must make another")
    return {each.party: each for each in sorted(verified, key=lambda each: each.party)}
