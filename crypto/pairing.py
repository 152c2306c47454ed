"""The secret that two parties share for one epoch, and the stream key it gives for one round.

The names, the session keys, the run and the epoch all enter the derivation, and for a stream key also the round
and the complete list of parties: a party that is asked again with another list gives a fresh, unrelated mask, so
an aggregator cannot subtract two answers to peel a mask off.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from crypto.announcement import Announcement
from crypto.derive import derive_key
from crypto.errors import Forged, UnknownIdentity
from crypto.framing import number_bytes, pack
from crypto.keys import SessionKey
from crypto.rounds import Round, require_epoch, require_exactly


@dataclass(frozen=True)
class PairSecret:
    """Known to two parties and nobody else; it is never sent."""

    run: str
    epoch: int
    secret: bytes = field(repr=False)

    def stream_key(self, moment: Round, parties: Collection[str]) -> bytes:
        require_epoch(self.run, self.epoch, moment.run, moment.epoch)
        names = pack("parties", *(party.encode() for party in sorted(parties)))
        return derive_key(self.secret, pack("mask stream", moment.to_bytes(), names))


def pair_secrets(session: SessionKey, me: str, admitted: Mapping[str, Announcement]) -> dict[str, PairSecret]:
    """The secrets ``me`` shares with every other admitted party, by name."""
    require_exactly(admitted, admitted)
    if me not in admitted:
        raise UnknownIdentity(f"{me!r} was not admitted to this epoch; it cannot take part")
    mine = admitted[me]
    if mine.session_public != session.public:
        raise Forged("the admitted session key under my own name is not mine; leave this epoch")
    return {other: _pair_secret(session, mine, theirs) for other, theirs in admitted.items() if other != me}


def _pair_secret(session: SessionKey, mine: Announcement, theirs: Announcement) -> PairSecret:
    require_epoch(theirs.run, theirs.epoch, mine.run, mine.epoch)
    first, second = sorted((mine, theirs), key=lambda each: each.party)
    info = pack(
        "pair secret",
        mine.run.encode(),
        number_bytes(mine.epoch),
        first.party.encode(),
        second.party.encode(),
        first.session_public,
        second.session_public,
    )
    return PairSecret(mine.run, mine.epoch, derive_key(session.agree(theirs.session_public), info))
