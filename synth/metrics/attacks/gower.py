"""Nearest synthetic rows under Anonymeter's mixed-type distance.

Per column: |a - b| over the range of both tables for numbers, 0 or 1 for categories; summed over the columns the
attacker knows. NOTE[DIFF]: two empty cells are equal (distance 0) and an empty cell is 1 from any number; the reference
implementation adds 1 for two empty cells and gets NaN for one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from synth.metrics.tables import FloatArray, IntArray, Table

BLOCK_CELLS = 2_000_000
"""Distances held at once: 16 MB per column."""


def nearest(targets: Table, candidates: Table, columns: Sequence[str]) -> IntArray:
    """Index of the nearest candidate of every target (the first of equals)."""
    widths = {name: _range(targets, candidates, name) for name in columns if name in targets.numbers}
    found = []
    for block in _blocks(targets, candidates):
        total = np.zeros((block.rows, candidates.rows))
        for name in columns:
            total += column_distance(block, candidates, name, widths.get(name, 1.0))
        found.append(total.argmin(axis=1))
    return np.concatenate(found)


def nearest_without_each(targets: Table, candidates: Table) -> dict[str, IntArray]:
    """For every column: the nearest candidate by all *other* columns. One pass: the sum minus each column's part."""
    names = targets.columns
    widths = {name: _range(targets, candidates, name) for name in targets.numbers}
    found: dict[str, list[IntArray]] = {name: [] for name in names}
    for block in _blocks(targets, candidates, held=len(names)):
        parts = {name: column_distance(block, candidates, name, widths.get(name, 1.0)) for name in names}
        total = np.sum(list(parts.values()), axis=0)
        for name, part in parts.items():
            # Rounded, so that rows equal on the other columns tie whatever order they were summed in.
            found[name].append(np.round(total - part, 9).argmin(axis=1))
    return {name: np.concatenate(indices) for name, indices in found.items()}


def column_distance(targets: Table, candidates: Table, name: str, width: float) -> FloatArray:
    """Shape (targets, candidates), within 0..1; `width` is the range of a numeric column over both tables."""
    if name in targets.codes:
        differs: FloatArray = np.not_equal.outer(targets.codes[name], candidates.codes[name]).astype(np.float64)
        return differs
    left, right = targets.numbers[name], candidates.numbers[name]
    distance = np.abs(left[:, None] - right[None, :]) / width
    if np.isnan(left).any() or np.isnan(right).any():
        empty_left, empty_right = np.isnan(left)[:, None], np.isnan(right)[None, :]
        distance = np.where(empty_left | empty_right, (empty_left != empty_right).astype(np.float64), distance)
    return distance


def _range(targets: Table, candidates: Table, name: str) -> float:
    values = np.concatenate([targets.filled(name), candidates.filled(name)])
    return (float(np.ptp(values)) or 1.0) if len(values) else 1.0


def _blocks(targets: Table, candidates: Table, held: int = 1) -> Iterator[Table]:
    size = max(1, BLOCK_CELLS // (candidates.rows * max(1, held // 8)))
    for start in range(0, targets.rows, size):
        yield targets.take(np.arange(start, min(start + size, targets.rows)))
