"""Rows as points, for everything that measures distances between rows.

    LabelCodes     min-max numbers and raw label codes: what the Bayesian network thesis used (trees, clusters, DCR)
    Mixed          min-max numbers and one-hot / √2, so one differing category is as far as a number's whole range

Both are fitted on real rows and applied unchanged to others. An empty number sits in the middle of its range with a
marker beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth.metrics.tables import FloatArray, Table


@dataclass(frozen=True)
class LabelCodes:
    ranges: dict[str, tuple[float, float]]

    @staticmethod
    def fit(real: Table) -> LabelCodes:
        return LabelCodes(_ranges(real))

    def points(self, table: Table) -> FloatArray:
        return np.column_stack([*_numbers(table, self.ranges), *(c.astype(np.float64) for c in table.codes.values())])


@dataclass(frozen=True)
class Mixed:
    ranges: dict[str, tuple[float, float]]

    @staticmethod
    def fit(real: Table) -> Mixed:
        return Mixed(_ranges(real))

    def points(self, table: Table) -> FloatArray:
        parts = _numbers(table, self.ranges)
        for name, codes in table.codes.items():
            parts.append(np.eye(table.cells(name))[codes] / np.sqrt(2.0))
        return np.column_stack(parts)


def _ranges(table: Table) -> dict[str, tuple[float, float]]:
    """Lowest value and width of each numeric column; width 1 where it is constant or empty."""
    ranges = {}
    for name in table.numbers:
        values = table.filled(name)
        ranges[name] = (float(values.min()), float(np.ptp(values)) or 1.0) if len(values) else (0.0, 1.0)
    return ranges


def _numbers(table: Table, ranges: dict[str, tuple[float, float]]) -> list[FloatArray]:
    parts: list[FloatArray] = []
    for name, (low, width) in ranges.items():
        scaled = (table.numbers[name] - low) / width
        empty = np.isnan(scaled)
        parts.append(np.where(empty, 0.5, scaled))
        if table.schema.numeric[name].missing:
            parts.append(empty.astype(np.float64))
    return parts
