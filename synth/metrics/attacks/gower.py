"""Nearest synthetic rows under Anonymeter's mixed-type distance.

Per column: |a - b| over the range of both tables for numbers, 0 or 1 for categories; summed over the columns the
attacker knows. NOTE[DIFF]: two empty cells are equal (distance 0) and an empty cell is 1 from any number; the reference
implementation adds 1 for two empty cells and gets NaN for one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from synth.metrics.tables import FloatArray, IntArray, Table

BLOCK_CELLS = 2_000_000
"""Distances held at once: 16 MB, and as much again for the column that is being added."""
ROUNDING = 9
"""Decimals that count, so that equally near rows tie whatever order their columns were summed in."""


def nearest(targets: Table, candidates: Table, columns: Sequence[str]) -> IntArray:
    """Index of the nearest candidate of every target (the first of equals)."""
    widths = _widths(targets, candidates)
    return np.concatenate(
        [total_distance(block, candidates, columns, widths).argmin(axis=1) for block in _blocks(targets, candidates)]
    )


def nearest_without_each(targets: Table, candidates: Table) -> dict[str, IntArray]:
    """For every column: the nearest candidate by all *other* columns (the first of equals).

    One column is at most 1 apart, so whoever wins without it is at most 1 farther in all columns than the overall
    winner. Only those few candidates are looked at column by column."""
    names = targets.columns
    widths = _widths(targets, candidates)
    found = []
    for block in _blocks(targets, candidates):
        totals = total_distance(block, candidates, names, widths)
        within_reach = totals.min(axis=1) + 1.0 + 10.0**-ROUNDING
        for row in range(block.rows):
            shortlist = np.flatnonzero(totals[row] <= within_reach[row])
            rivals, target = candidates.take(shortlist), block.take(np.array([row]))
            parts = np.concatenate([column_distance(target, rivals, name, widths.get(name, 1.0)) for name in names])
            found.append(shortlist[np.round(totals[row, shortlist] - parts, ROUNDING).argmin(axis=1)])
    return dict(zip(names, np.stack(found, axis=1), strict=True))


def total_distance(targets: Table, candidates: Table, columns: Sequence[str], widths: dict[str, float]) -> FloatArray:
    """Shape (targets, candidates): the sum over the columns."""
    total = np.zeros((targets.rows, candidates.rows))
    for name in columns:
        total += column_distance(targets, candidates, name, widths.get(name, 1.0))
    return total


def column_distance(targets: Table, candidates: Table, name: str, width: float) -> FloatArray | NDArray[np.bool_]:
    """Shape (targets, candidates), within 0..1; `width` is the range of a numeric column over both tables."""
    if name in targets.codes:
        return np.not_equal.outer(targets.codes[name], candidates.codes[name])
    left, right = targets.numbers[name], candidates.numbers[name]
    distance: FloatArray = np.subtract.outer(left, right)
    np.abs(distance, out=distance)
    distance /= width
    empty_left, empty_right = np.isnan(left), np.isnan(right)
    if empty_left.any() or empty_right.any():
        one_is_empty = np.not_equal.outer(empty_left, empty_right)
        distance = np.where(np.isnan(distance), one_is_empty, distance)
    return distance


def _widths(targets: Table, candidates: Table) -> dict[str, float]:
    """Range of every numeric column over both tables; 1 where it is constant or empty."""
    widths = {}
    for name in targets.numbers:
        values = np.concatenate([targets.filled(name), candidates.filled(name)])
        widths[name] = (float(np.ptp(values)) or 1.0) if len(values) else 1.0
    return widths


def _blocks(targets: Table, candidates: Table) -> Iterator[Table]:
    size = max(1, BLOCK_CELLS // candidates.rows)
    for start in range(0, targets.rows, size):
        yield targets.take(np.arange(start, min(start + size, targets.rows)))
