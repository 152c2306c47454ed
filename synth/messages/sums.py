"""What both sides must know alike about a sum: how it is formed, how large its numbers may be, and where they go.

Everything here follows from the plan and the shapes of an answer, which are public; nothing follows from rows. An
array's type decides its way: integers are counts and their sum is exact, floating point is rounded a little.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from synth.errors import ProtocolError
from synth.interface import Answer, Array, Ask
from synth.messages import wire
from synth.plan import Mode, Plan

REAL_CLIP = 2.0**10  # far beyond any change of a weight; a 64-bit ring still resolves 1e-12 for ten parties
_COUNT_NOISE = 2**20  # the noise of a count may be this large
_GRADIENT_LIMIT = 2**53 - 1  # twice what a sum is cut to before its noise (dpsgd.LARGEST_SUM); a thousand parties fit

Way = Literal["count", "real"]
WEIGHT = 1  # the weight is the last real
CONFIRM, OPENED = "confirm", "opened"  # what a party signs in a round beside its answer


def question_of(ask: Ask) -> str:
    """What every party must have been asked alike: masks cancel, and sums open, only between the same questions.

    Without this an aggregator could send one party the model and the others a dead one, whose updates vanish in the
    sum (Pasquini, Francati and Ateniese, 2022). The whole ask is covered: nothing in it is for one party alone.
    """
    options = {name: float(value) if isinstance(value, float) else value for name, value in ask.options.items()}
    return wire.digest(wire.pack_ask(replace(ask, options=options)))


def purpose_of(mode: Mode) -> str:
    """What a party signs its answer as; run, plan, list, number and question are in the round it signs it for."""
    return f"{mode} answer"


def tolerates_loss(plan: Plan) -> bool:
    """Then sums over different parties are possible, and each must be confirmed by its parties before it opens."""
    return plan.minimum_parties < len(plan.parties)


def count_limit(plan: Plan) -> int | None:
    """The largest whole number one party may send, noise included: rows, or lattice steps of a sum of gradients. None
    where it sends shares, which have any size."""
    if plan.partition == "columns":
        return None
    if plan.family.answers == "gradients":
        return _GRADIENT_LIMIT
    return plan.largest_count + _COUNT_NOISE


@dataclass(frozen=True)
class Entry:
    """One array of an answer."""

    name: str
    way: Way
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Layout:
    """The arrays of an answer in the order of their names: where each lies in the vectors that are summed."""

    entries: tuple[Entry, ...]

    @classmethod
    def of(cls, answer: Answer) -> Layout:
        return cls(tuple(Entry(name, _way(name, a), a.shape) for name, a in sorted(answer.arrays.items())))

    @property
    def counts(self) -> int:
        return sum(entry.size for entry in self.entries if entry.way == "count")

    @property
    def reals(self) -> int:
        return sum(entry.size for entry in self.entries if entry.way == "real") + WEIGHT

    def flatten(self, answer: Answer) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """The counts, and the reals with the weight last."""
        parts: dict[Way, list[Array]] = {"count": [], "real": []}
        for entry in self.entries:
            parts[entry.way].append(answer.arrays[entry.name].ravel())
        counts = np.concatenate([np.empty(0, np.int64), *parts["count"]]).astype(np.int64)
        return counts, np.concatenate([*parts["real"], np.array([answer.weight])]).astype(np.float64)

    def restore(self, counts: npt.NDArray[np.int64], reals: npt.NDArray[np.float64]) -> Answer:
        """The inverse of `flatten`, for vectors or their sums."""
        if counts.shape != (self.counts,) or reals.shape != (self.reals,):
            raise ProtocolError("a sum does not have the size of its answers; the parties run another version")
        rest: dict[Way, Array] = {"count": counts, "real": reals}
        arrays = {}
        for entry in self.entries:
            arrays[entry.name] = rest[entry.way][: entry.size].reshape(entry.shape)
            rest[entry.way] = rest[entry.way][entry.size :]
        return Answer(arrays, float(reals[-1]))

    def to_text(self) -> str:
        return json.dumps([[entry.name, entry.way, list(entry.shape)] for entry in self.entries], separators=(",", ":"))

    @classmethod
    def from_text(cls, content: str) -> Layout:
        try:
            layout = cls(tuple(_entry(item) for item in json.loads(content)))
        except (ValueError, TypeError, RecursionError):
            raise ProtocolError("an answer's layout cannot be read; its sender runs another version") from None
        names = [entry.name for entry in layout.entries]
        if names != sorted(set(names)) or layout.to_text() != content:
            raise ProtocolError("an answer's layout is not in its one proper form; its sender runs another version")
        return layout


def _entry(item: object) -> Entry:
    if not isinstance(item, list) or len(item) != 3:
        raise ValueError
    name, way, shape = item
    if not isinstance(name, str) or way not in ("count", "real") or not isinstance(shape, list):
        raise ValueError
    if not all(type(length) is int and 0 <= length < 2**40 for length in shape):
        raise ValueError
    return Entry(name, way, tuple(shape))


def _way(name: str, array: Array) -> Way:
    if np.issubdtype(array.dtype, np.integer):
        return "count"
    if np.issubdtype(array.dtype, np.floating):
        return "real"
    raise ProtocolError(f"array '{name}' of an answer holds neither integers nor floating point; it cannot be summed")
