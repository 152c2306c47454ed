"""What all noisy tables together say about one column or one pair: averages weighted by precision.

A column's counts are in the released histogram and, summed, in every table that contains the column. Each is noisy;
together they are known about twice as well. A pair counted in several rounds is averaged the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from synth.encoding import contingency
from synth.encoding.bins import Bins
from synth.encoding.contingency import Clique
from synth.encoding.scales import Floats
from synth.interface import Array
from synth.statistics.histograms import Statistics

EXACT = 1.0  # variance assumed of exact counts (no privacy), so that weights exist; only ratios matter


@dataclass(frozen=True)
class Measurement:
    """A noisy table of a clique, and the variance of each of its cells."""

    clique: Clique
    counts: Floats
    variance: Floats


def measured(clique: Clique, counts: Floats, variance: float) -> Measurement:
    """A table with the same noise in every cell."""
    return Measurement(clique, counts, np.full(counts.shape, variance))


def measured_columns(statistics: Statistics, bins: Bins, names: Sequence[str]) -> list[Measurement]:
    """What the released histogram says about the bins of the named columns."""
    found = []
    cells, fine = statistics.finest
    counts = cells.split(fine)
    for number, name in enumerate(names):
        variance = cells.variances(name, bins.of(name), statistics.variance or EXACT)
        found.append(Measurement((number,), bins.fold(name, counts[name]), variance))
    return found


def measured_tables(
    sums: Array, cliques: Sequence[Clique], sizes: Sequence[int], variance: float | Sequence[float]
) -> list[Measurement]:
    """An opened answer, by clique; `variance` (of all, or of each table) 0 is taken for exact counts."""
    each = [variance] * len(cliques) if isinstance(variance, float) else variance
    tables = contingency.split(sums, cliques, sizes)
    return [measured(one, table, known or EXACT) for one, table, known in zip(cliques, tables, each, strict=True)]


def combined_tables(found: Iterable[Measurement]) -> dict[Clique, Measurement]:
    """One table per clique."""
    groups: dict[Clique, list[Measurement]] = {}
    for one in found:
        groups.setdefault(one.clique, []).append(one)
    return {clique: average(group) for clique, group in groups.items()}


def combined_pairs(tables: Iterable[Measurement]) -> dict[Clique, Measurement]:
    """One table per pair, from all tables that it is in."""
    return combined_tables(margin(table, pair) for table in tables for pair in combinations(table.clique, 2))


def combined_columns(histograms: Iterable[Measurement], tables: Iterable[Measurement]) -> list[Measurement]:
    """One table per column, from its histogram and the margins of all tables it is in."""
    margins: dict[Clique, list[Measurement]] = {}
    for table in tables:
        for column in table.clique:
            margins.setdefault((column,), []).append(margin(table, (column,)))
    return [average([histogram, *margins.get(histogram.clique, [])]) for histogram in histograms]


def average(found: Sequence[Measurement]) -> Measurement:
    """The mean of measurements of one clique, weighted by precision."""
    precision = np.sum([1 / one.variance for one in found], axis=0)
    counts = np.sum([one.counts / one.variance for one in found], axis=0) / precision
    return Measurement(found[0].clique, counts, 1 / precision)


def margin(table: Measurement, clique: Clique) -> Measurement:
    """The table summed over all columns but the clique's, which come in the table's order."""
    axes = tuple(axis for axis, other in enumerate(table.clique) if other not in clique)
    kept = tuple(column for column in table.clique if column in clique)
    return Measurement(kept, table.counts.sum(axis=axes), table.variance.sum(axis=axes))
