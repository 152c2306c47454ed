"""Two more ways to compare one column: Hellinger distance and the Kolmogorov-Smirnov statistic.

`hellinger` follows the federated Bayesian network thesis: mean over all columns, numeric ones cut at NumPy's 'auto'
edges of both tables pooled, because that binning alone reproduces its published figures (20 fixed bins would make every
method look ten times better). `ks` is the largest gap between the two distribution functions of a numeric column.
"""

from __future__ import annotations

import numpy as np

from synth.metrics.fidelity import mean_of, shares
from synth.metrics.tables import FloatArray, Rows, Table, table_of
from synth.schema import Schema

MAX_BINS = 10_000
"""One far outlier can make NumPy ask for millions of bins; beyond this, equal-width bins of the pooled range."""


def hellinger(real: Rows, synthetic: Rows, schema: Schema) -> float | None:
    """Mean Hellinger distance over all columns, 0..1; 0 is best."""
    return mean_of(hellinger_by_column(real, synthetic, schema).values())


def ks(real: Rows, synthetic: Rows, schema: Schema) -> float | None:
    """Mean Kolmogorov-Smirnov statistic over numeric columns, 0..1; 0 is best. None: no numeric column."""
    return mean_of(ks_by_column(real, synthetic, schema).values())


def hellinger_by_column(real: Rows, synthetic: Rows, schema: Schema) -> dict[str, float | None]:
    left, right = table_of(real, schema, "the real table"), table_of(synthetic, schema, "the synthetic table")
    return {name: _hellinger(left, right, name) for name in schema.released}


def ks_by_column(real: Rows, synthetic: Rows, schema: Schema) -> dict[str, float | None]:
    """Over the cells that are filled; None where either column has none."""
    left, right = table_of(real, schema, "the real table"), table_of(synthetic, schema, "the synthetic table")
    return {name: _ks(left.filled(name), right.filled(name)) for name in schema.numeric}


def _hellinger(real: Table, synthetic: Table, name: str) -> float | None:
    if name in real.codes:
        p, q = shares(real, name), shares(synthetic, name)
    else:
        left, right = real.filled(name), synthetic.filled(name)
        if len(left) == 0 or len(right) == 0:
            return None
        edges = _pooled_edges(np.concatenate([left, right]))
        p, q = (np.histogram(values, edges)[0] / len(values) for values in (left, right))
    return float(np.sqrt(np.square(np.sqrt(p) - np.sqrt(q)).sum() / 2.0))


def _pooled_edges(values: FloatArray) -> FloatArray:
    low, high = np.quantile(values, [0.25, 0.75])
    # The Freedman-Diaconis count is known before NumPy would allocate that many edges.
    width = 2.0 * (high - low) / np.cbrt(len(values))
    if width > 0 and np.ptp(values) / width > MAX_BINS:
        return np.histogram_bin_edges(values, MAX_BINS)
    return np.histogram_bin_edges(values, "auto")


def _ks(left: FloatArray, right: FloatArray) -> float | None:
    if len(left) == 0 or len(right) == 0:
        return None
    left, right = np.sort(left), np.sort(right)
    points = np.concatenate([left, right])
    below_left = np.searchsorted(left, points, side="right") / len(left)
    below_right = np.searchsorted(right, points, side="right") / len(right)
    return float(np.abs(below_left - below_right).max())
