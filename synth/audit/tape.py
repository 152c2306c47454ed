"""A noise source that writes everything down: each draw, each value that noise was added to, and what came of it.

Noise is given out as an array that notices when it is added to something. So a mechanism is recorded as it is, without
knowing that it is, and noise that never reaches a sum (or reaches it in a way nobody can follow) stays `unused`, which
an audit reports. DP-SGD adds its noise in torch, where arrays notice nothing: there the whole step is `observed`.

A second tape replays a first one: whatever its mechanism computes under the noise is written down, and then the first
tape's output is released in its place. That is how sensitivity is defined: two runs on neighbouring tables that have
released the same so far, and what they compute next.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from synth.privacy.dpsgd import PrivateGradient
from synth.privacy.noise import NoiseSource, seeded_source

Floats = npt.NDArray[np.float64]
Kind = Literal["skellam", "gaussian", "step"]
Label = str | int
Call = tuple[str, tuple[Label, ...], tuple[float | int, ...]]  # what was drawn, its stream, its parameters


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


@dataclass
class Tape:
    """One run at one party. Rows from `common_rows` on belong to this table only; sampled iff `extra_joins`."""

    common_rows: int
    extra_joins: bool = True
    replays: Tape | None = None
    calls: list[Call] = field(default_factory=list)
    releases: list[Release] = field(default_factory=list)
    unused: list[Call] = field(default_factory=list)
    sampled: list[tuple[float, int]] = field(default_factory=list)  # rate and size of samples that no step used yet
    places: dict[str, int] = field(default_factory=dict)  # how often each source of frozen randomness was used

    def source(self, *labels: Label) -> RecordingSource:
        return RecordingSource(self, labels)

    def next_place(self, name: str) -> int:
        self.places[name] = self.places.get(name, -1) + 1
        return self.places[name]

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

    def observed(self, step: Any, gradient: PrivateGradient, *arguments: Any) -> Any:
        """Carry out a DP-SGD step twice, with its noise and without, so that both are known apart."""
        source = gradient.source
        if not isinstance(source, RecordingSource) or source.tape is not self:
            return step(gradient, *arguments)  # not this party's
        unused, places = len(self.unused), dict(self.places)
        noisy = step(gradient, *arguments)
        draws = [call for call in self.unused[unused:] if call[0] == "normal"]
        del self.unused[unused:]
        after, self.places = self.places, places  # the same randomness again, in dropout and the like
        gradient.source = Silent()
        bare = step(gradient, *arguments)
        gradient.source, self.places = source, after
        divisor = gradient.privacy.expected_batch
        self.calls.append(("step", (), (divisor, len(draws))))
        value = divisor * _flat(bare)
        noise = divisor * _flat(noisy) - value
        return self.add(
            Release(
                "step",
                source.labels,
                value,
                _variance(noise, source.last_normal.astype(np.float64)),
                noisy,
                gradient.privacy.l2_clip_norm,
                self._rate(len(arguments[1])),
            )
        )

    def _rate(self, rows: int) -> float:
        """With which probability a row was in a batch of that many; 1 if it is not the sample drawn last."""
        rate, size = self.sampled.pop() if self.sampled else (1.0, rows)
        return rate if size == rows else 1.0


class RecordingSource(NoiseSource):
    """Frozen noise: every call has its own bits, fixed by the stream's labels and the call's number in it."""

    def __init__(self, tape: Tape, labels: tuple[Label, ...]) -> None:
        super().__init__(bytes(32))
        self.tape, self.labels = tape, labels
        self.last_normal: npt.NDArray[np.float32] = np.zeros(0, dtype=np.float32)

    def child(self, *labels: Label) -> RecordingSource:
        return RecordingSource(self.tape, (*self.labels, *labels))

    def random_bytes(self, count: int) -> bytes:
        place = self.tape.next_place(repr(self.labels))
        return seeded_source(0, *self.labels, "call", place).random_bytes(count)

    def uint64(self, count: int) -> npt.NDArray[np.uint64]:
        self.tape.calls.append(("uint64", self.labels, (count,)))
        return super().uint64(count)

    def skellam(self, variance: float, count: int) -> npt.NDArray[np.int64]:
        call: Call = ("skellam", self.labels, (variance, count))
        self.tape.drawn(call)
        return Noticing.of(super().skellam(variance, count), self.tape, call, variance)

    def normal(self, count: int) -> npt.NDArray[np.float32]:
        call: Call = ("normal", self.labels, (count,))
        self.tape.drawn(call)
        self.last_normal = super().normal(count)
        return Noticing.of(self.last_normal.copy(), self.tape, call, 1.0)

    def poisson_sample(self, rows: int, rate: float) -> npt.NDArray[np.bool_]:
        self.tape.calls.append(("poisson_sample", self.labels, (rate,)))
        joined = super().poisson_sample(rows, rate)
        joined[self.tape.common_rows :] = self.tape.extra_joins
        self.tape.sampled.append((rate, int(joined.sum())))
        return joined


class Silent(NoiseSource):
    """No noise at all: shows what noise is added to."""

    def __init__(self) -> None:
        super().__init__(bytes(32))

    def child(self, *labels: Label) -> Silent:
        return self

    def skellam(self, variance: float, count: int) -> npt.NDArray[np.int64]:
        return np.zeros(count, dtype=np.int64)

    def normal(self, count: int) -> npt.NDArray[np.float32]:
        return np.zeros(count, dtype=np.float32)


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
        kind: Kind = "skellam" if self.call[0] == "skellam" else "gaussian"
        return self.tape.add(Release(kind, self.call[1], value.astype(np.float64).ravel(), self.variance, result))


def _flat(tensors: list[Tensor]) -> Floats:
    return torch.cat([tensor.reshape(-1) for tensor in tensors]).double().numpy()


def _variance(noise: Floats, drawn: Floats) -> float:
    """How large the noise is that was made of these standard normal values."""
    if drawn.shape != noise.shape:
        return 0.0
    return float(noise @ drawn / (drawn @ drawn)) ** 2
