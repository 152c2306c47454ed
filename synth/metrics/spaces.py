"""Rows as points, for everything that measures distances between rows.

    LabelCodes     min-max numbers and raw label codes: what the Bayesian network thesis used (trees, clusters, DCR)
    Mixed          min-max numbers and one-hot / √2, so one differing category is as far as a number's whole range

Both are fitted on real rows and applied unchanged to others. A column that is constant there has no range of its own:
the declared one keeps it from drowning the others. An empty number sits in the middle of its range with a marker
beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth.encoding.scales import scale_of
from synth.metrics.tables import FloatArray, IntArray, Table

MOST_CATEGORIES = 500
"""Labels of one column that get a coordinate; the rarer ones share one, or a code book would fill the memory."""


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
    labels: dict[str, IntArray]  # the codes that have a coordinate of their own

    @staticmethod
    def fit(real: Table) -> Mixed:
        return Mixed(_ranges(real), {name: frequent_codes(codes) for name, codes in real.codes.items()})

    def points(self, table: Table) -> FloatArray:
        parts = _numbers(table, self.ranges)
        for name, known in self.labels.items():
            parts.append(one_hot(table.codes[name], known) / np.sqrt(2.0))
        return np.column_stack(parts)


def frequent_codes(codes: IntArray) -> IntArray:
    """The codes that occur, in order; only the most frequent ones where there are very many."""
    found, counts = np.unique(codes, return_counts=True)
    return np.sort(found[np.argsort(-counts, kind="stable")[:MOST_CATEGORIES]])


def one_hot(codes: IntArray, known: IntArray) -> FloatArray:
    """Shape (rows, known + 1): the last coordinate stands for every other code."""
    where = np.minimum(np.searchsorted(known, codes), len(known) - 1)
    where = np.where(known[where] == codes, where, len(known))
    result = np.zeros((len(codes), len(known) + 1))
    result[np.arange(len(codes)), where] = 1.0
    return result


def _ranges(table: Table) -> dict[str, tuple[float, float]]:
    """Lowest value and width of each numeric column."""
    ranges = {}
    for name in table.numbers:
        values, scale = table.filled(name), scale_of(table.schema.numeric[name])
        low, width = (float(values.min()), float(np.ptp(values))) if len(values) else (scale.lowest, 0.0)
        ranges[name] = (low, width or scale.highest - scale.lowest or 1.0)
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
