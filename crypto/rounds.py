"""Where in a run a message belongs, and who must be present.

A key stream used twice gives both vectors away, so nothing here can be masked, signed or opened without saying
run, epoch and round. An epoch is a period with one list of parties and one set of session keys; losing a party
ends it. A sum over other parties than the declared ones is never made, not even silently.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from crypto.errors import (
    DuplicateParty,
    Malformed,
    OutOfRange,
    TooFewParties,
    UnknownIdentity,
    WrongEpoch,
    WrongRound,
    WrongRun,
)
from crypto.framing import number_bytes, pack, read_number, read_text, unpack

FEWEST_PARTIES = 2  # the sum of one party is that party's vector
_NUMBER_LIMIT = 2**63


@dataclass(frozen=True)
class Round:
    """The name of one sum: no two sums of a federation share it."""

    run: str
    epoch: int
    number: int

    def __post_init__(self) -> None:
        if not self.run:
            raise Malformed("a round needs the name of its run")
        if not (0 <= self.epoch < _NUMBER_LIMIT and 0 <= self.number < _NUMBER_LIMIT):
            raise OutOfRange("epoch and round number must lie between 0 and 2^63")

    def to_bytes(self) -> bytes:
        return pack("round", self.run.encode(), number_bytes(self.epoch), number_bytes(self.number))

    @classmethod
    def from_bytes(cls, data: bytes) -> "Round":
        run, epoch, number = unpack("round", data, 3)
        return cls(read_text(run), read_number(epoch), read_number(number))

    def require(self, expected: "Round") -> None:
        """Refuse a message of this round when ``expected`` is under way."""
        require_epoch(self.run, self.epoch, expected.run, expected.epoch)
        if self.number != expected.number:
            raise WrongRound(f"a message of round {self.number} came in round {expected.number}: replayed or reordered")


def require_epoch(run: str, epoch: int, expected_run: str, expected_epoch: int) -> None:
    if run != expected_run:
        raise WrongRun(f"a message of another run came in run {expected_run}; it is ignored")
    if epoch != expected_epoch:
        raise WrongEpoch(f"a message of epoch {epoch} came in epoch {expected_epoch}; its keys are retired")


def require_exactly(present: Iterable[str], declared: Collection[str], minimum: int = FEWEST_PARTIES) -> None:
    """Refuse unless every declared party is present once, nobody else is, and they reach the minimum."""
    if len(set(declared)) != len(declared):
        raise DuplicateParty("a party is declared twice; correct the list of parties")
    if len(declared) < max(minimum, FEWEST_PARTIES):
        needed = max(minimum, FEWEST_PARTIES)
        raise TooFewParties(f"{len(declared)} parties are declared but a sum needs at least {needed}")
    seen: set[str] = set()
    for party in present:
        if party not in declared:
            raise UnknownIdentity(f"party {party!r} is not declared for this sum; its message is refused")
        if party in seen:
            raise DuplicateParty(f"party {party!r} appears twice in one sum; the round is refused")
        seen.add(party)
    if missing := sorted(set(declared) - seen):
        raise TooFewParties(f"no message from {', '.join(missing)}: abort the round and re-key without them")
