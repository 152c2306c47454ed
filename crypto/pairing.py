"""The secret that two parties share for one epoch, and the stream key it gives for one round.

The names, the session keys, the run, its plan and the epoch all enter the derivation, and for a stream key also the
complete list of parties, the round and the question: a party that is asked again with another list gives a fresh,
unrelated mask, so an aggregator cannot subtract two answers to peel a mask off, and masks cancel only between parties
that were asked the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from crypto.announcement import Announcement
from crypto.derive import derive_key
from crypto.errors import Forged, UnknownIdentity
from crypto.framing import pack
from crypto.keys import SessionKey
from crypto.rounds import KeyPeriod, Round, require_exactly


@dataclass(frozen=True)
class PairSecret:
    """Known to two parties and nobody else; it is never sent."""

    period: KeyPeriod
    secret: bytes = field(repr=False)

    def stream_key(self, moment: Round) -> bytes:
        moment.period.require(self.period)
        return derive_key(self.secret, pack("mask stream", moment.to_bytes()))


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
    theirs.period.require(mine.period)
    first, second = sorted((mine, theirs), key=lambda each: each.party)
    info = pack(
        "pair secret",
        mine.period.to_bytes(),
        first.party.encode(),
        second.party.encode(),
        first.session_public,
        second.session_public,
    )
    return PairSecret(mine.period, derive_key(session.agree(theirs.session_public), info))
