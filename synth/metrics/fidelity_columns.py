"""Two more ways to compare one column: Hellinger distance and the Kolmogorov-Smirnov statistic.

`hellinger` follows the federated Bayesian network thesis: mean over all columns, numeric ones cut at NumPy's 'auto'
edges of both tables pooled, because that binning alone reproduces its published figures (20 fixed bins would make every
method look ten times better), empty cells in a bin of their own. `ks` is the largest gap between the two distribution
functions of a numeric column's filled cells.
"""

from __future__ import annotations

import numpy as np

from synth.metrics.fidelity import mean_of, one_sided, shares
from synth.metrics.tables import FloatArray, Rows, Table, table_of
from synth.schema import Schema

MAX_BINS = 10_000
"""One far outlier can make NumPy ask for millions of bins; beyond this, equal-width bins of the pooled range."""


def hellinger(real: Rows, synthetic: Rows, schema: Schema) -> float:
    """Mean Hellinger distance over all columns, 0..1; 0 is best."""
    return float(np.mean(list(hellinger_by_column(real, synthetic, schema).values())))


def ks(real: Rows, synthetic: Rows, schema: Schema) -> float | None:
    """Mean Kolmogorov-Smirnov statistic over numeric columns, 0..1; 0 is best. None: no numeric column."""
    return mean_of(ks_by_column(real, synthetic, schema).values())


def hellinger_by_column(real: Rows, synthetic: Rows, schema: Schema) -> dict[str, float]:
    left, right = table_of(real, schema, "the real table"), table_of(synthetic, schema, "the synthetic table")
    return {name: _hellinger(left, right, name) for name in schema.released}


def ks_by_column(real: Rows, synthetic: Rows, schema: Schema) -> dict[str, float | None]:
    """Over the cells that are filled; None where neither column has any."""
    left, right = table_of(real, schema, "the real table"), table_of(synthetic, schema, "the synthetic table")
    return {name: _ks(left.filled(name), right.filled(name)) for name in schema.numeric}


def _hellinger(real: Table, synthetic: Table, name: str) -> float:
    if name in real.codes:
        p, q = shares(real, name), shares(synthetic, name)
    else:
        filled = [table.filled(name) for table in (real, synthetic)]
        edges = _pooled_edges(np.concatenate(filled))
        p, q = (
            np.append(np.histogram(values, edges)[0], table.rows - len(values)) / table.rows
            for values, table in zip(filled, (real, synthetic), strict=True)
        )
    return float(np.sqrt(np.square(np.sqrt(p) - np.sqrt(q)).sum() / 2.0))


def _pooled_edges(values: FloatArray) -> FloatArray:
    if len(values) == 0:
        return np.array([0.0, 1.0])  # all cells are in the bin of the empty ones
    low, high = np.quantile(values, [0.25, 0.75])
    # The Freedman-Diaconis count is known before NumPy would allocate that many edges.
    width = 2.0 * (high - low) / np.cbrt(len(values))
    if width > 0 and np.ptp(values) / width > MAX_BINS:
        return np.histogram_bin_edges(values, MAX_BINS)
    return np.histogram_bin_edges(values, "auto")


def _ks(left: FloatArray, right: FloatArray) -> float | None:
    if len(left) == 0 or len(right) == 0:
        return one_sided(left, right)
    left, right = np.sort(left), np.sort(right)
    points = np.concatenate([left, right])
    below_left = np.searchsorted(left, points, side="right") / len(left)
    below_right = np.searchsorted(right, points, side="right") / len(right)
    return float(np.abs(below_left - below_right).max())
