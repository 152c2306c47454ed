"""Where answers are sealed, what was sealed with which key streams: read off the functions that do it.

The recorder changes nothing. It stands around `Seal.seal` (which answer), `mask` (the streams shared with each other
party) and `cover` (a party's own stream), and knows which streams the coalition can compute: those that one of its
members shares, and own streams whose seed was revealed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np

from fed_node.seal import numbers
from fed_node.seal.seal import Seal
from synth.interface import Answer, Array
from synth.messages import wire
from tests.adversary.openable import Released, SealedVector, Stream


@dataclass
class Recorder:
    """All vectors that left one world's parties."""

    coalition: frozenset[str]
    vectors: list[SealedVector] = field(default_factory=list)
    known: set[Stream] = field(default_factory=set)
    answers: dict[Released, Answer] = field(default_factory=dict)
    foreign: set[str] = field(default_factory=set)  # what openers opened that is no sum of what was sealed
    _party: str = ""
    _streams: dict[Stream, int] = field(default_factory=dict)

    @contextmanager
    def at(self, party: str) -> Iterator[None]:
        self._party = party
        with _recording(self):
            yield

    def learn(self, seed: bytes) -> None:
        """A party revealed the seed of its own mask."""
        if seed:
            self.known.add(b"own" + seed)

    def opened(self, counts: Array, parties: Sequence[str], run: str, sequence: int) -> None:
        """An opener reports the sum of these parties' answers: it must be that, to the unit."""
        latest = {each.party: a for each, a in self.answers.items() if (each.run, each.sequence) == (run, sequence)}
        total = sum(latest[party].arrays["counts"] for party in parties if party in latest)
        if set(latest) < set(parties) or not np.array_equal(total, counts):
            self.foreign.add(f"opened something else than the sum of {', '.join(parties)} in {run}, ask {sequence}")

    def stream(self, key: Stream, sign: int) -> None:
        self._streams[key] = self._streams.get(key, 0) + sign

    def sealed(self, run: str, plan: str, sequence: int, answer: Answer) -> None:
        released = Released(self._party, run, sequence, wire.digest(wire.pack_answer(answer)), plan)
        self.answers[released] = answer
        self.vectors.append(SealedVector(released, dict(self._streams)))
        self._streams.clear()


@contextmanager
def _recording(recorder: Recorder) -> Iterator[None]:
    seal, mask, cover = Seal.seal, numbers.mask, numbers.cover

    def sealed(self: Seal, answer: Answer, *arguments: Any) -> Any:
        recorder._streams.clear()
        reply = seal(self, answer, *arguments)
        recorder.sealed(self.sessions.run, self.plan.digest(), self.sequence(arguments[-1]), answer)
        return reply

    def masked(vector: Any, *, me: str, secrets: Any, moment: Any) -> Any:
        for other, secret in secrets.items():
            key = secret.stream_key(moment)
            recorder.stream(key, 1 if me < other else -1)
            if other in recorder.coalition or me in recorder.coalition:
                recorder.known.add(key)
        return mask(vector, me=me, secrets=secrets, moment=moment)

    def covered(vector: Any, seed: bytes) -> Any:
        recorder.stream(b"own" + seed, 1)
        return cover(vector, seed)

    with (
        patch.object(Seal, "seal", sealed),
        patch.object(numbers, "mask", masked),
        patch.object(numbers, "cover", covered),
    ):
        yield
