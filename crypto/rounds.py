"""Where a message belongs, in one value, and who must be present.

Everything that is signed, derived or journaled contains the bytes of one of the two values below. A `KeyPeriod` says
run, plan and epoch: all that is known when session keys are announced, shared secrets made and letters sealed. A
`Round` adds what is known when numbers leave: the list of parties, the number of the ask and what was asked. A message
of another plan, list or question is therefore another message altogether: a run that an aggregator begins again under
another plan shares no key stream, mask or signature with the first. Run, plan and question are strings here; what they
mean is the caller's affair.

A key stream used twice gives both vectors away, so nothing can be masked, signed or opened without a `Round`. A sum
over other parties than the declared ones is never made, not even silently.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

from crypto.errors import (
    DuplicateParty,
    Malformed,
    OutOfRange,
    TooFewParties,
    UnknownIdentity,
    WrongEpoch,
    WrongParties,
    WrongPlan,
    WrongQuestion,
    WrongRound,
    WrongRun,
)
from crypto.framing import number_bytes, pack, read_number, read_text, unpack, unpack_all

FEWEST_PARTIES = 2  # the sum of one party is that party's vector
_NUMBER_LIMIT = 2**63


@dataclass(frozen=True)
class KeyPeriod:
    """One set of session keys: an epoch of a run under one plan. Losing a party ends it."""

    run: str
    plan: str  # digest
    epoch: int

    def __post_init__(self) -> None:
        if not self.run or not self.plan:
            raise Malformed("an epoch needs the name of its run and the digest of its plan")
        if not 0 <= self.epoch < _NUMBER_LIMIT:
            raise OutOfRange("an epoch must lie between 0 and 2^63")

    def to_bytes(self) -> bytes:
        return pack("key period", self.run.encode(), self.plan.encode(), number_bytes(self.epoch))

    @classmethod
    def from_bytes(cls, data: bytes) -> "KeyPeriod":
        run, plan, epoch = unpack("key period", data, 3)
        return cls(read_text(run), read_text(plan), read_number(epoch))

    def require(self, expected: "KeyPeriod") -> None:
        """Refuse a message of this period when ``expected`` is under way."""
        if self.run != expected.run:
            raise WrongRun(f"a message of another run came in run {expected.run}; it is ignored")
        if self.plan != expected.plan:
            raise WrongPlan(f"a message of run {self.run} under another plan came; a run belongs to one plan")
        if self.epoch != expected.epoch:
            raise WrongEpoch(f"a message of epoch {self.epoch} came in epoch {expected.epoch}; its keys are retired")


@dataclass(frozen=True)
class Round:
    """The name of one sum: no two sums of a federation share it."""

    period: KeyPeriod
    parties: tuple[str, ...]  # in the sum, by name; none where nothing is summed in secret
    number: int
    question: str  # digest of the ask

    def __post_init__(self) -> None:
        if not 0 <= self.number < _NUMBER_LIMIT:
            raise OutOfRange("a round's number must lie between 0 and 2^63")
        if list(self.parties) != sorted(set(self.parties)):
            raise Malformed("a round names its parties once each and in order")

    def to_bytes(self) -> bytes:
        return self._bytes

    @cached_property
    def _bytes(self) -> bytes:
        """Written once: a party needs it for each of the others, and it names them all."""
        parties = pack("parties", *(party.encode() for party in self.parties))
        return pack("round", self.period.to_bytes(), parties, number_bytes(self.number), self.question.encode())

    @classmethod
    def from_bytes(cls, data: bytes) -> "Round":
        period, parties, number, question = unpack("round", data, 4)
        names = tuple(read_text(party) for party in unpack_all("parties", parties))
        return cls(KeyPeriod.from_bytes(period), names, read_number(number), read_text(question))

    def require(self, expected: "Round") -> None:
        """Refuse a message of this round when ``expected`` is under way."""
        self.period.require(expected.period)
        if self.parties != expected.parties:
            raise WrongParties("a message is for a sum over other parties than this one; nothing was opened")
        if self.number != expected.number:
            raise WrongRound(f"a message of round {self.number} came in round {expected.number}: replayed or reordered")
        if self.question != expected.question:
            raise WrongQuestion("a message answers another question than was asked here; nothing was opened")


def require_exactly(present: Iterable[str], declared: Collection[str], minimum: int = FEWEST_PARTIES) -> None:
    """Refuse unless every declared party is present once, nobody else is, and they reach the minimum."""
    expected = set(declared)
    if len(expected) != len(declared):
        raise DuplicateParty("a party is declared twice; correct the list of parties")
    if len(declared) < max(minimum, FEWEST_PARTIES):
        needed = max(minimum, FEWEST_PARTIES)
        raise TooFewParties(f"{len(declared)} parties are declared but a sum needs at least {needed}")
    seen: set[str] = set()
    for party in present:
        if party not in expected:
            raise UnknownIdentity(f"party {party!r} is not declared for this sum; its message is refused")
        if party in seen:
            raise DuplicateParty(f"party {party!r} appears twice in one sum; the round is refused")
        seen.add(party)
    if missing := sorted(expected - seen):
        raise TooFewParties(f"no message from {', '.join(missing)}: abort the round and re-key without them")
