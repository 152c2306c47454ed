"""Where the values of a numeric column are cut into cells: functions of the schema alone.

The coarse cut is for shape. The lowest value, zero and the highest value get a cell of their own (that is where real
columns pile up: no capital gain, a limit reached) and the rest is cut evenly, or, where the declared domain spans three
orders of magnitude, evenly in asinh(value / bend): amounts, incomes and laboratory values crowd near zero and trail
off. The bend lies far below the largest value, because a declared bound says little about where the rows are.

The fine cut is for heaps. It has a cell per value where that is a few thousand, and else about as many cells, with one
to itself for every round number: that is where people heap what they write down. Times are cut at whole days.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from synth.encoding.scales import SECONDS, Floats, Scale

Ints = npt.NDArray[np.int64]
MAGNITUDES = 1000.0  # a domain this many times wider than its finest detail is cut evenly in asinh, not in value
SMALLEST_BEND, BEND_STEPS = 1e-6, 20.0  # of the largest value; steps
FINEST = 4096  # so many values have a cell each
FINE = 4096  # cells of a column with more values, beside round numbers
ROUND = 512  # most round numbers of one kind that have a cell to themselves
DAY = SECONDS["day"]


def coarse_cut(scale: Scale, bins: int, curved: bool, old: bool = False) -> Ints:
    """Starts of the cells, counted in steps from the lowest value, and the number of values at the end. `old` is the
    cut of models saved before the bend was lowered."""
    if scale.points <= bins:
        return np.arange(scale.points + 1, dtype=np.int64)
    zero = round(-scale.lowest / scale.step)
    alone = [position for position in {0, zero, scale.points - 1} if 0 <= position < scale.points]
    parts = bins - 2 * len(alone)  # a value cut out of the middle of a cell makes two cells more
    bend = bend_of(scale, curved, old)
    inner = np.linspace(0, scale.points, parts + 1) if bend is None else _curved(scale, bend, parts)
    starts = np.concatenate([np.rint(inner[1:-1]), *([position, position + 1] for position in alone)])
    return np.unique(np.append(starts, [0, scale.points])).astype(np.int64)


def even_cut(scale: Scale, bins: int) -> Ints:
    return np.unique(np.rint(np.linspace(0, scale.points, min(bins, scale.points) + 1))).astype(np.int64)


def fine_cut(scale: Scale, coarse: Ints, curved: bool) -> Ints:
    """A cut that has all of the coarse one's places and more between them."""
    if scale.points <= FINEST:
        return np.arange(scale.points + 1, dtype=np.int64)
    if not curved:  # times
        per_day = max(round(DAY / scale.step), 1)
        days = np.arange(0, scale.points, per_day * -(-scale.points // (per_day * FINEST)))
        return np.unique(np.concatenate([coarse, days])).astype(np.int64)
    bend = bend_of(scale, curved)
    inner = np.linspace(0, scale.points, FINE + 1) if bend is None else _curved(scale, bend, FINE)
    alone = _round_numbers(scale, bend is not None)
    starts = np.concatenate([np.rint(inner[1:-1]), alone, alone + 1, coarse])
    return np.unique(np.clip(starts, 0, scale.points)).astype(np.int64)


def measure(scale: Scale, starts: Ints, curved: bool) -> Floats:
    """How much of the column a cell is where nothing else is known: its width as the cut sees it."""
    bend = bend_of(scale, curved)
    if bend is None:
        return np.diff(starts).astype(np.float64)
    values = scale.lowest + (starts - 0.5) * scale.step
    found: Floats = np.diff(np.arcsinh(values / bend))
    return found


def bend_of(scale: Scale, curved: bool, old: bool = False) -> float | None:
    """Below it cells are even, above it they grow with the value; None: even everywhere."""
    largest = max(abs(scale.lowest), abs(scale.highest))
    finest = scale.lowest if scale.lowest > 0 else scale.step
    if not curved or largest < MAGNITUDES * finest:
        return None
    return largest / MAGNITUDES if old else max(largest * SMALLEST_BEND, BEND_STEPS * scale.step)


def _curved(scale: Scale, bend: float, parts: int) -> Floats:
    first, last = np.arcsinh(scale.lowest / bend), np.arcsinh(scale.highest / bend)
    inner: Floats = (bend * np.sinh(np.linspace(first, last, parts + 1)) - scale.lowest) / scale.step
    return inner


def _round_numbers(scale: Scale, curved: bool) -> Floats:
    """Positions of round numbers: of two digits and noughts (and 5 as a third) at every order of magnitude, or, in a
    narrow range, the multiples of the smallest round unit that are not too many."""
    lowest, highest = scale.lowest / scale.step, scale.highest / scale.step  # in steps; 0 is the number 0
    if curved:
        orders = range(int(np.log10(max(abs(lowest), abs(highest)))) + 1)
        digits = np.arange(10, 1000, 5)
        found = np.unique(np.concatenate([digits * 10.0**order for order in orders]))
        found = np.concatenate([-found, found])
    else:
        unit = 10.0 ** np.ceil(np.log10((highest - lowest) / ROUND))
        found = np.arange(np.ceil(lowest / unit), np.floor(highest / unit) + 1) * unit
    inside = found[(found >= lowest) & (found <= highest)]
    return np.rint(inside - lowest)
