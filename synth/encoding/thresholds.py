"""The raw numbers at which one public cell ends and the next begins, exact to the last bit.

A number's way into its cell (multiply, round, cut to the bounds, divide, round) never turns around: of two numbers the
larger one has no smaller cell. So every cell begins at one smallest float64, which is searched here with the encoder
itself. Whoever compares with these needs no arithmetic of his own, and finds the same cells to the unit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from synth.encoding.contingency import Ints
from synth.encoding.scales import Floats, Scale

LARGEST = np.finfo(np.float64).max


def cell_thresholds(scale: Scale, starts: Ints) -> Floats:
    """The smallest number of each cell but the first, which holds everything below. `starts` has the last one's end,
    too."""

    def position(raw: Floats) -> Floats:
        found: Floats = np.rint((scale.snap(raw) - scale.lowest) / scale.step)
        return found

    return _smallest(position, starts[1:-1].astype(np.float64))


def lowest_inside(scale: Scale) -> float:
    """The smallest number that is not below the bounds."""
    return float(_smallest(scale.round, np.array([scale.lowest]))[0])


def lowest_above(scale: Scale) -> float:
    """The smallest number above the bounds."""
    return float(_smallest(scale.round, np.array([np.nextafter(scale.highest, np.inf)]))[0])


def _smallest(rising: Callable[[Floats], Floats], wanted: Floats) -> Floats:
    """The smallest finite number whose image reaches each wanted one; infinite where none does."""
    low, high = (np.full(len(wanted), _order(np.array([bound]))[0]) for bound in (-LARGEST, LARGEST))
    high = high + 1  # of the numbers in their order: the first that is known to reach, or infinity
    while (low < high).any():
        middle = (low & high) + ((low ^ high) >> 1)  # their mean, without a sum that overflows
        reached = rising(_number(middle)) >= wanted
        high = np.where(reached, middle, high)
        low = np.where(reached | (low == high), low, middle + 1)
    return _number(low)


def _order(numbers: Floats) -> Ints:
    """Where a number stands among all float64."""
    bits = numbers.view(np.int64)
    return np.where(bits < 0, -(bits & np.int64(2**63 - 1)), bits)


def _number(order: Ints) -> Floats:
    bits = np.where(order < 0, -order | np.int64(-(2**63)), order)
    found: Floats = bits.view(np.float64)
    return found
