"""A noise source that writes everything down: each draw, each value that noise was added to, and what came of it.

Noise is given out as an array that notices when it is added to something. So a mechanism is recorded as it is, without
knowing that it is, and noise that never reaches a sum (or reaches it in a way nobody can follow) stays `unused`, which
an audit reports. A DP-SGD step is announced while it runs (`recorded`), so that its lattice is known.

All other luck is frozen by its streams: each begins at the bits that its labels fix and goes on as a real one does. A
stream that one row more moves on is at another place ever after, and whatever else is drawn from it comes out another:
that is how an audit sees luck that is shared between real rows and what leaves without noise.

A second tape replays a first one: whatever its mechanism computes under the noise is written down, and then the first
tape's output is released in its place. That is how sensitivity is defined: two runs on neighbouring tables that have
released the same so far, and what they compute next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from synth.privacy.dpsgd import LATTICE, NoisySum
from synth.privacy.events import Event
from synth.privacy.noise import NoiseSource, seeded_source
from synth.privacy.selection.ballots import BallotBox

Floats = npt.NDArray[np.float64]
Kind = Literal["skellam", "gaussian", "step", "votes"]
Label = str | int
Call = tuple[str, tuple[Label, ...], tuple[float | int, ...]]  # what was drawn, its stream, its parameters
Draw = Callable[[float, int], npt.NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Release:
    """One value that left under noise."""

    kind: Kind
    stream: tuple[Label, ...]
    value: Floats  # before noise
    variance: float  # of the noise, per entry
    output: Any  # as released
    clip_norm: float = np.inf  # steps only
    sample_rate: float = 1.0  # with which a row is part of the value
    shares: int = 1  # of a step's noise, of which this is one
    event: Event | None = None  # of votes, as they were cast; `value` is then what each client wished for


@dataclass(frozen=True)
class Step:
    """What is known of a DP-SGD step while it runs."""

    clip_norm: float
    sample_rate: float
    shares: int


@dataclass
class Tape:
    """One run at one party. Rows from `common_rows` on belong to this table only; sampled iff `extra_joins`."""

    common_rows: int
    extra_joins: bool = True
    replays: Tape | None = None
    other_noise: bool = False  # every noise another one than a tape without this has; all other luck the same
    calls: list[Call] = field(default_factory=list)
    releases: list[Release] = field(default_factory=list)
    unused: list[Call] = field(default_factory=list)
    sampled: list[tuple[float, int]] = field(default_factory=list)  # rate and size of samples that no step used yet
    step: Step | None = None  # the one that is running

    def source(self, *labels: Label) -> RecordingSource:
        return RecordingSource(self, labels)

    def drawn(self, call: Call) -> None:
        self.calls.append(call)
        self.unused.append(call)

    def add(self, release: Release) -> Any:
        """Write a release down; what is to be released."""
        number = len(self.releases)
        self.releases.append(release)
        if self.replays is None or number >= len(self.replays.releases):
            return release.output
        before = self.replays.releases[number]
        return before.output if before.value.shape == release.value.shape else release.output

    def observed(self, step: Any, gradient: NoisySum, *arguments: Any) -> Any:
        """Carry out a DP-SGD step, whose noise notices what it is added to."""
        if not isinstance(gradient.source, RecordingSource) or gradient.source.tape is not self:
            return step(gradient, *arguments)  # not this party's
        privacy = gradient.privacy
        self.calls.append(("step", (), (privacy.expected_batch,)))
        self.step = Step(privacy.l2_clip_norm, self._rate(len(arguments[1])), privacy.shares)
        try:
            return step(gradient, *arguments)
        finally:
            self.step = None

    def observed_votes(self, cast: Any, box: BallotBox, wishes: Any, truths: Any) -> Any:
        """Let clients vote, and write down what each of them wished for."""
        if not isinstance(box.source, RecordingSource) or box.source.tape is not self:
            return cast(box, wishes, truths)
        labels = box.source.labels
        self.calls.append(("votes", labels, (len(wishes), box.event.sample_rate)))
        output = cast(replace(box, source=box.source.child("other")) if self.other_noise else box, wishes, truths)
        value = np.column_stack([wishes, truths])
        return self.add(Release("votes", labels, value, 0.0, output, event=box.event))

    def _rate(self, rows: int) -> float:
        """With which probability a row was in a batch of that many; 1 if it is not the sample drawn last."""
        rate, size = self.sampled.pop() if self.sampled else (1.0, rows)
        return rate if size == rows else 1.0


class RecordingSource(NoiseSource):
    """Frozen luck: the labels of a stream fix its bits."""

    def __init__(self, tape: Tape, labels: tuple[Label, ...]) -> None:
        super().__init__(seeded_source(0, *labels).random_bytes(32))
        self.tape, self.labels = tape, labels

    def child(self, *labels: Label) -> RecordingSource:
        return RecordingSource(self.tape, (*self.labels, *labels))

    def uint64(self, count: int) -> npt.NDArray[np.uint64]:
        self.tape.calls.append(("uint64", self.labels, (count,)))
        return super().uint64(count)

    def skellam(self, variance: float, count: int) -> npt.NDArray[np.int64]:
        return self._noticing("skellam", super().skellam, variance, count, variance)

    def rounded_gaussian(self, sigma: float, count: int) -> npt.NDArray[np.int64]:
        return self._noticing("rounded_gaussian", super().rounded_gaussian, sigma, count, sigma**2)

    def poisson_sample(self, rows: int, rate: float) -> npt.NDArray[np.bool_]:
        self.tape.calls.append(("poisson_sample", self.labels, (rate,)))
        joined = super().poisson_sample(rows, rate)
        joined[self.tape.common_rows :] = self.tape.extra_joins
        self.tape.sampled.append((rate, int(joined.sum())))
        return joined

    def _noticing(self, kind: str, draw: Draw, level: float, count: int, variance: float) -> Noticing:
        call: Call = (kind, self.labels, (level, count))
        self.tape.drawn(call)
        noise = draw(level, count)
        return Noticing.of(draw(level, count) if self.tape.other_noise else noise, self.tape, call, variance)


class Silent(NoiseSource):
    """No noise at all: shows what noise is added to."""

    def __init__(self) -> None:
        super().__init__(bytes(32))

    def child(self, *labels: Label) -> Silent:
        return self

    def skellam(self, variance: float, count: int) -> npt.NDArray[np.int64]:
        return np.zeros(count, dtype=np.int64)


class Noticing(np.ndarray[Any, Any]):
    """Noise that writes down what it is added to, times how much."""

    tape: Tape
    call: Call
    variance: float

    @classmethod
    def of(cls, noise: npt.NDArray[Any], tape: Tape, call: Call, variance: float) -> Noticing:
        array = noise.view(cls)
        array.tape, array.call, array.variance = tape, call, variance
        return array

    def __array_finalize__(self, parent: Any) -> None:
        if isinstance(parent, Noticing) and hasattr(parent, "tape"):
            self.tape, self.call, self.variance = parent.tape, parent.call, parent.variance

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        plain = [np.asarray(each) for each in inputs]
        result = getattr(ufunc, method)(*plain, **options)
        others = [each for each in inputs if not isinstance(each, Noticing)]
        if method == "__call__" and ufunc is np.multiply and len(others) == 1 and np.ndim(others[0]) == 0:
            return Noticing.of(result, self.tape, self.call, self.variance * float(others[0]) ** 2)
        if method == "__call__" and ufunc is np.add and len(others) == 1:
            result = self._added_to(np.asarray(others[0]), result)
        if out is not None:
            out[0][...] = result
            return out[0]
        return result

    def _added_to(self, value: npt.NDArray[Any], result: npt.NDArray[Any]) -> Any:
        if self.call in self.tape.unused:
            self.tape.unused.remove(self.call)
        kind, stream, _ = self.call
        value = value.astype(np.float64).ravel()
        step = self.tape.step
        if step is not None and kind == "rounded_gaussian":
            unit = step.clip_norm / LATTICE
            known = (step.clip_norm, step.sample_rate, step.shares)
            release = Release("step", stream, unit * value, unit**2 * self.variance, result, *known)
        else:
            release = Release("skellam" if kind == "skellam" else "gaussian", stream, value, self.variance, result)
        return self.tape.add(release)


@contextmanager
def recorded(tape: Tape) -> Iterator[None]:
    """While open, DP-SGD steps and votes are announced to the tape."""
    step, cast = NoisySum.noisy_sum, BallotBox.cast

    def observed(gradient: NoisySum, *arguments: Any) -> Any:
        return tape.observed(step, gradient, *arguments)

    def observed_votes(box: BallotBox, *arguments: Any) -> Any:
        return tape.observed_votes(cast, box, *arguments)

    with patch.object(NoisySum, "noisy_sum", observed), patch.object(BallotBox, "cast", observed_votes):
        yield
