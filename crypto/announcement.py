"""Admission: each party announces its session key for an epoch, signed by its pinned identity.

The aggregator only carries these messages. It cannot swap a key (the signature covers it), present an old one
(run and epoch are signed) or invent a party (nobody pinned it); ``admit`` is run by every party for itself.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from crypto.errors import DuplicateParty, Malformed, UnknownIdentity
from crypto.framing import number_bytes, pack, read_number, read_text, unpack
from crypto.keys import PUBLIC_KEY_BYTES, Identity, IdentityKey, SessionKey
from crypto.rounds import FEWEST_PARTIES, require_epoch, require_exactly

Roster = Mapping[str, Identity]  # party name -> identity pinned out of band


@dataclass(frozen=True)
class Announcement:
    """A session key whose owner, run and epoch have been verified."""

    run: str
    epoch: int
    party: str
    session_public: bytes

    def signed_bytes(self) -> bytes:
        return pack(
            "announcement",
            self.run.encode(),
            number_bytes(self.epoch),
            self.party.encode(),
            self.session_public,
        )


def announce(key: IdentityKey, session: SessionKey, *, run: str, epoch: int, party: str) -> bytes:
    body = Announcement(run, epoch, party, session.public).signed_bytes()
    return pack("signed announcement", body, key.sign(body))


def verify_announcement(message: bytes, roster: Roster, *, run: str, epoch: int) -> Announcement:
    body, signature = unpack("signed announcement", message, 2)
    run_field, epoch_field, party_field, session_public = unpack("announcement", body, 4)
    party = read_text(party_field)
    if party not in roster:
        raise UnknownIdentity("an announcement names a party that is not pinned here; compare fingerprints first")
    roster[party].verify(signature, body)
    if len(session_public) != PUBLIC_KEY_BYTES:
        raise Malformed(f"the session key of {party!r} does not have {PUBLIC_KEY_BYTES} bytes")
    announcement = Announcement(read_text(run_field), read_number(epoch_field), party, session_public)
    require_epoch(announcement.run, announcement.epoch, run, epoch)
    return announcement


def admit(
    messages: Iterable[bytes],
    roster: Roster,
    *,
    run: str,
    epoch: int,
    declared: Collection[str],
    minimum: int = FEWEST_PARTIES,
) -> dict[str, Announcement]:
    """The verified session keys of exactly the declared parties, by name."""
    verified = [verify_announcement(message, roster, run=run, epoch=epoch) for message in messages]
    require_exactly((each.party for each in verified), declared, minimum)
    if len({each.session_public for each in verified}) != len(verified):
        raise DuplicateParty("two parties announce the same session key; both must make another")
    return {each.party: each for each in sorted(verified, key=lambda each: each.party)}
