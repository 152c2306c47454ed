"""Parties that hold fixed answers, an aggregator that records all it sees, and a network that may lose messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from aggregator.sums.exchange import Replies
from aggregator.sums.secure_sum import SecureSum
from crypto.keys import IdentityKey
from fed_node.seal.seal import Seal
from synth.errors import FedsynthError, Refusal
from synth.interface import Answer, Arrays, Ask, Sum
from synth.messages import wire
from synth.messages.wire import Envelope
from synth.plan import Plan
from tests.small import plan_of

RUN = "run-1"
STATISTICS = Ask(options={"phase": "statistics"})
TRAINING = Ask(options={"phase": "training"})
ASKS = {"statistics": STATISTICS, "training": TRAINING}
Change = Callable[[str, str, Envelope], Envelope]  # kind, party, message


def plan_for(mode: str = "masked", parties: int = 3, **changes: Any) -> Plan:
    secure_sum = {"statistics": mode, "updates": mode} | changes.pop("secure_sum", {})
    if mode == "plain":
        changes = {"privacy": "none"} | changes
    return plan_of({"name": "ctgan"}, parties=parties, secure_sum=secure_sum, **changes)


def answer_of(party: str, sequence: int) -> Answer:
    """Counts and reals that depend on nothing but the names."""
    rng = np.random.default_rng([sequence, *party.encode()])
    arrays: Arrays = {
        "weights/b": rng.normal(size=(4, 3)).astype(np.float32),
        "counts": rng.integers(-500, 500, 25),
        "weights/a": rng.normal(scale=20, size=7),
        "rows": rng.integers(0, 1000, 1),
    }
    return Answer(arrays, float(rng.random()))


def sum_of(parties: list[str], sequence: int) -> Answer:
    answers = [answer_of(party, sequence) for party in parties]
    arrays = {name: np.sum([a.arrays[name].astype(np.float64) for a in answers], axis=0) for name in answers[0].arrays}
    return Answer(arrays, sum(a.weight for a in answers))


@dataclass
class Remembered:
    """A party's ledger, as far as its seal reads it."""

    lists: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def list_of(self, run: str, sequence: int) -> tuple[str, ...] | None:
        return self.lists.get(sequence)

    def bind(self, run: str, sequence: int, parties: Sequence[str]) -> None:
        self.lists[sequence] = tuple(parties)


@dataclass
class SealedParties:
    """An `Exchange` whose other end are `Seal` objects; what it carried is what a curious aggregator knows."""

    plan: Plan
    folder: Path
    answers: Callable[[str, int], Answer] = answer_of  # party and sequence → what it answers
    lost: set[tuple[str, str]] = field(default_factory=set)  # (kind, party) that never answers; "*" is every kind
    outgoing: Change = lambda kind, party, envelope: envelope
    incoming: Change = lambda kind, party, envelope: envelope
    record: list[tuple[str, str, Envelope]] = field(default_factory=list)

    def __post_init__(self) -> None:
        names = [party.name for party in self.plan.parties]
        keys = {name: IdentityKey.generate() for name in names}
        self.pins = {name: key.identity.to_text() for name, key in keys.items()}
        for name, key in keys.items():
            self.home(name).mkdir(parents=True)
            (self.home(name) / "identity.key").write_bytes(key.to_pem())
        self.seals: dict[str, Seal] = {}
        self.ledgers = {name: Remembered() for name in names}
        for name in names:
            self.restart(name)

    def home(self, party: str) -> Path:
        return self.folder / party

    def restart(self, party: str) -> None:
        """A new process: only the volume is left."""
        peers = {name: pin for name, pin in self.pins.items() if name != party}
        self.seals[party] = Seal(self.plan, party, RUN, self.home(party), peers, self.ledgers[party])

    def __call__(self, kind: str, envelopes: dict[str, Envelope]) -> Replies:
        received, lost = {}, []
        for party, envelope in envelopes.items():
            if {(kind, party), ("*", party)} & self.lost:
                lost.append(party)
                continue
            sent = wire.from_records(wire.to_records(self.outgoing(kind, party, envelope)))
            reply = self.incoming(kind, party, self.deliver(kind, party, sent))
            self.record += [(f"to {kind}", party, sent), (f"from {kind}", party, reply)]
            received[party] = wire.from_records(wire.to_records(reply))
        return Replies(received, lost)

    def deliver(self, kind: str, party: str, envelope: Envelope) -> Envelope:
        """What the party's guard would do: an answer, or a fixed code."""
        seal = self.seals[party]
        try:
            match kind:
                case "ask":
                    sequence, ask = seal.sequence(envelope), wire.unpack_ask(envelope)
                    return seal.seal(self.answers(party, sequence), ask, envelope)
                case "finish":
                    return seal.signed(f'{{"party": "{party}"}}')
                case _:
                    method: Callable[[Envelope], Envelope] = getattr(seal, kind)
                    return method(envelope)
        except FedsynthError as error:
            raise Refusal(party, error.code) from error


def admitted(parties: SealedParties) -> SecureSum:
    sums = SecureSum(parties.plan, RUN, parties)
    replies = parties("hello", dict.fromkeys(sums.parties, sums.hello()))
    sums.agree_on_keys(replies.received)
    return sums


def assert_is_sum(total: object, parties: list[str], sequence: int, tolerance: float = 1e-6) -> None:
    """Counts exactly, reals within the tolerance."""
    assert isinstance(total, Sum)
    expected = sum_of(parties, sequence)
    assert set(total.arrays) == set(expected.arrays)
    for name, array in expected.arrays.items():
        assert total.arrays[name].shape == array.shape
        exact = name in ("counts", "rows")
        np.testing.assert_allclose(total.arrays[name], array, rtol=0, atol=0 if exact else tolerance)
    assert abs(total.weight - expected.weight) <= tolerance
