"""The four figures every paper of the field prints: JSD, WD, and total variation of single columns and of pairs.

All are distances, so 0 is best. `jsd` and `wd` follow the federated CTGAN paper: Jensen-Shannon *distance* with
base-2 logarithms over the union of supports, and Wasserstein-1 after min-max scaling fitted on the real training
column and applied unchanged (no clipping) to the synthetic one. Total variation needs cells, so numeric columns are
cut into 32 equal-width bins of their declared domain (`tables.public_bins`): public, and the same for every table.
An empty cell is a category of its own wherever cells are counted. Elsewhere figures are of the filled cells, and a
numeric column that is filled in one table only is 1 away, as its whole range would be.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import numpy as np
from scipy.spatial.distance import jensenshannon
from scipy.stats import wasserstein_distance

from synth.encoding.scales import scale_of
from synth.metrics.tables import FloatArray, IntArray, Rows, Table, table_of
from synth.schema import Schema

DENSE_CELLS = 1_000_000
"""Up to here cells are counted in an array; beyond, only those that occur."""


def jsd(real: Rows, synthetic: Rows, schema: Schema) -> float | None:
    """Mean Jensen-Shannon distance over discrete columns, 0..1. None: the schema has no discrete column."""
    return mean_of(jsd_by_column(real, synthetic, schema).values())


def wd(real: Rows, synthetic: Rows, schema: Schema) -> float | None:
    """Mean scaled Wasserstein-1 over numeric columns, 0 upwards. None: no numeric column can be compared."""
    return mean_of(wd_by_column(real, synthetic, schema).values())


def tvd_one_way(real: Rows, synthetic: Rows, schema: Schema) -> float:
    """Mean total variation distance over all columns, 0..1."""
    return float(np.mean(list(tvd_by_column(real, synthetic, schema).values())))


def tvd_two_way(real: Rows, synthetic: Rows, schema: Schema) -> float | None:
    """Mean total variation distance over all pairs of columns, 0..1. None: there is only one column."""
    return mean_of(tvd_by_pair(real, synthetic, schema).values())


def jsd_by_column(real: Rows, synthetic: Rows, schema: Schema) -> dict[str, float]:
    left, right = table_of(real, schema, "the real table"), table_of(synthetic, schema, "the synthetic table")
    return {name: _jensen_shannon(shares(left, name), shares(right, name)) for name in schema.discrete}


def wd_by_column(real: Rows, synthetic: Rows, schema: Schema) -> dict[str, float | None]:
    """Over the cells that are filled; None where neither column has any."""
    left, right = table_of(real, schema, "the real table"), table_of(synthetic, schema, "the synthetic table")
    return {name: _wasserstein(left, right, name) for name in schema.numeric}


def tvd_by_column(real: Rows, synthetic: Rows, schema: Schema) -> dict[str, float]:
    left, right = table_of(real, schema, "the real table"), table_of(synthetic, schema, "the synthetic table")
    return {name: total_variation(shares(left, name), shares(right, name)) for name in schema.released}


def tvd_by_pair(real: Rows, synthetic: Rows, schema: Schema) -> dict[tuple[str, str], float]:
    left, right = table_of(real, schema, "the real table"), table_of(synthetic, schema, "the synthetic table")
    bins_left = {name: left.discretized(name) for name in left.columns}
    bins_right = {name: right.discretized(name) for name in right.columns}
    result = {}
    for first, second in combinations(left.columns, 2):
        width = left.cells(second)
        p, q = joint_shares(
            bins_left[first] * width + bins_left[second], bins_right[first] * width + bins_right[second]
        )
        result[first, second] = total_variation(p, q)
    return result


def shares(table: Table, name: str) -> FloatArray:
    """Relative frequency of every code of a column, 'empty cell' last."""
    return np.bincount(table.discretized(name), minlength=table.cells(name)) / table.rows


def joint_shares(left: IntArray, right: IntArray) -> tuple[FloatArray, FloatArray]:
    """Relative frequencies of every cell number that occurs, in either column, in the same order."""
    largest = max(int(left.max()), int(right.max()))
    if largest >= DENSE_CELLS:  # two columns of many labels: number the cells that occur
        cells, where = np.unique(np.concatenate([left, right]), return_inverse=True)
        left, right, largest = where[: len(left)], where[len(left) :], len(cells) - 1
    p, q = (np.bincount(codes, minlength=largest + 1) / len(codes) for codes in (left, right))
    return p, q


def total_variation(p: FloatArray, q: FloatArray) -> float:
    return float(np.abs(p - q).sum() / 2.0)


def _jensen_shannon(p: FloatArray, q: FloatArray) -> float:
    # Rounding may put the squared distance of equal columns a hair below 0, whose root SciPy gives as NaN.
    return float(np.nan_to_num(jensenshannon(p, q, base=2), nan=0.0))


def _wasserstein(real: Table, synthetic: Table, name: str) -> float | None:
    left, right = real.filled(name), synthetic.filled(name)
    if len(left) == 0 or len(right) == 0:
        return one_sided(left, right)
    low, width = float(left.min()), float(np.ptp(left))
    if width == 0.0:  # a constant real column has no range of its own; the declared one keeps the unit meaningful
        scale = scale_of(real.schema.numeric[name])
        width = (scale.highest - scale.lowest) or 1.0
    return float(wasserstein_distance((left - low) / width, (right - low) / width))


def one_sided(left: FloatArray, right: FloatArray) -> float | None:
    """The distance of two columns of which one, or both, have no filled cell."""
    return None if len(left) == len(right) else 1.0


def mean_of(values: Iterable[float | None]) -> float | None:
    """Mean of the figures that exist; None when none does."""
    present = [value for value in values if value is not None]
    return float(np.mean(present)) if present else None
