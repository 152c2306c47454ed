"""How columns move together: association matrices of one table, and how far apart two tables' matrices are.

    Pearson's r            numeric with numeric
    Cramér's V             discrete with discrete, plain (CTGAN paper) and bias-corrected (Bayesian network thesis)
    Theil's U              discrete given discrete, not symmetric (FinDiff paper)
    correlation ratio      numeric given discrete

An empty discrete cell is a category; an empty number drops out of its own pairs. A constant column is associated with
nothing (0), except that Theil's U of a constant is 1, as in the library the FinDiff paper used.
NOTE[DIFF]: that library applies Yates's correction to χ² of 2 × 2 tables; the papers' formula has none, and so here.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from synth.metrics.contingency import Contingency, cramers_v, theils_u
from synth.metrics.fidelity import mean_of
from synth.metrics.tables import FloatArray, IntArray, Rows, Table, table_of
from synth.schema import Schema

FLAT = 1e-12
"""Variance, as a share of the column's own, that is rounding: the column is constant where the other is filled."""


@dataclass(frozen=True, eq=False)
class Associations:
    """All matrices of one table. Rows and columns follow `numeric` and `discrete`."""

    numeric: list[str]
    discrete: list[str]
    pearson: FloatArray  # (numeric, numeric), diagonal 1
    cramers_v: FloatArray  # (discrete, discrete), diagonal 1
    cramers_v_corrected: FloatArray  # (discrete, discrete), diagonal 1
    theils_u: FloatArray  # (discrete, discrete): share of the row column's entropy that the column explains
    correlation_ratio: FloatArray  # (numeric, discrete)

    def mixed(self) -> FloatArray:
        """One symmetric matrix over numeric then discrete columns: r, correlation ratio, bias-corrected V."""
        return np.block([[self.pearson, self.correlation_ratio], [self.correlation_ratio.T, self.cramers_v_corrected]])


def associations(rows: Rows, schema: Schema) -> Associations:
    table = table_of(rows, schema)
    numeric, discrete = list(schema.numeric), list(schema.discrete)
    plain, corrected, explained = np.eye(len(discrete)), np.eye(len(discrete)), np.eye(len(discrete))
    for i, j in combinations(range(len(discrete)), 2):
        pair = Contingency.of(table.codes[discrete[i]], table.codes[discrete[j]])
        plain[i, j] = plain[j, i] = cramers_v(pair)
        corrected[i, j] = corrected[j, i] = cramers_v(pair, corrected=True)
        explained[i, j], explained[j, i] = theils_u(pair), theils_u(pair.transposed())
    ratios = np.zeros((len(numeric), len(discrete)))
    for i, name in enumerate(numeric):
        for j, group in enumerate(discrete):
            ratios[i, j] = correlation_ratio(table.numbers[name], table.codes[group])
    return Associations(
        numeric, discrete, pearson([table.numbers[name] for name in numeric]), plain, corrected, explained, ratios
    )


def mean_absolute_difference(left: Associations, right: Associations) -> float | None:
    """Mean |difference| over unordered pairs: r for numeric, plain V for discrete, ratio for mixed; 0 is best."""
    gaps = [_upper(left.pearson, right.pearson), _upper(left.cramers_v, right.cramers_v)]
    gaps.append(np.abs(left.correlation_ratio - right.correlation_ratio).ravel())
    return mean_of(np.concatenate(gaps).tolist())


def association_kept(real: Associations, synthetic: Associations) -> float | None:
    """1 - sum |difference| / sum |real association| over pairs of the mixed matrix, 0..1; 1 is best, and a table whose
    columns were shuffled scores 0. None: the real table has no association to keep."""
    pairs = np.triu_indices(len(real.mixed()), 1)
    theirs = np.abs(real.mixed()[pairs]).sum()
    if theirs == 0.0:
        return None
    return float(max(0.0, 1.0 - np.abs(real.mixed() - synthetic.mixed())[pairs].sum() / theirs))


def pcd(left: Associations, right: Associations) -> float:
    """Pairwise correlation difference: Frobenius norm of the difference of the mixed matrices; 0 is best."""
    return float(np.linalg.norm(left.mixed() - right.mixed()))


def matrix_distance(real: Rows, synthetic: Rows, schema: Schema) -> float:
    """1 - tr(R S) / (|R| |S|) on Pearson matrices with integer category codes (WAE paper), 0..1; 0 is best."""
    left, right = (_code_correlation(table_of(rows, schema)) for rows in (real, synthetic))
    return float(np.clip(1.0 - np.sum(left * right) / (np.linalg.norm(left) * np.linalg.norm(right)), 0.0, 1.0))


def pearson(columns: list[FloatArray]) -> FloatArray:
    """Over the rows where both cells are filled; 0 with a constant column and in a table of one row."""
    result = np.eye(len(columns))
    if not columns or len(columns[0]) < 2:
        return result
    stacked = np.stack(columns)
    filled = ~np.isnan(stacked)
    if not filled.all():
        result = _pairwise_pearson(stacked, filled)
    else:
        with np.errstate(invalid="ignore", divide="ignore"):
            result = np.nan_to_num(np.atleast_2d(np.corrcoef(stacked)))
        result[np.ptp(stacked, axis=1) == 0] = 0.0  # rounding can leave a constant column a tiny variance
        result[:, np.ptp(stacked, axis=1) == 0] = 0.0
    np.fill_diagonal(result, 1.0)
    return np.clip(result, -1.0, 1.0)


def _pairwise_pearson(columns: FloatArray, filled: NDArray[np.bool_]) -> FloatArray:
    """All pairs by matrix products. Columns are standardised first, so that sums of squares lose no digits."""
    own = filled.sum(axis=1, keepdims=True)
    mean = np.where(filled, columns, 0.0).sum(axis=1, keepdims=True) / np.maximum(own, 1)
    centred = np.where(filled, columns - mean, 0.0)
    deviation = np.sqrt(np.square(centred).sum(axis=1, keepdims=True) / np.maximum(own, 1))
    values, there = centred / np.where(deviation > 0, deviation, 1.0), filled.astype(np.float64)
    rows = np.maximum(there @ there.T, 1.0)  # where both are filled
    sums, squares = values @ there.T, np.square(values) @ there.T  # of the first column, over those rows
    covariance = values @ values.T - sums * sums.T / rows
    variance = squares - np.square(sums) / rows
    variance = np.where(variance > FLAT * rows, variance, 0.0)
    scale = np.sqrt(variance * variance.T)
    return np.divide(covariance, scale, out=np.zeros_like(covariance), where=scale > 0)


def correlation_ratio(values: FloatArray, groups: IntArray) -> float:
    """sqrt(variance between group means / variance); 0 for a constant or empty column."""
    filled = ~np.isnan(values)
    values, groups = values[filled], groups[filled]
    if len(values) == 0 or np.ptp(values) == 0:
        return 0.0
    centred = values - values.mean()
    sizes = np.bincount(groups)
    sums = np.bincount(groups, weights=centred)
    between = np.square(sums[sizes > 0]) / sizes[sizes > 0]
    return float(np.clip(np.sqrt(between.sum() / np.square(centred).sum()), 0.0, 1.0))


def _upper(left: FloatArray, right: FloatArray) -> FloatArray:
    return np.abs(left - right)[np.triu_indices(len(left), 1)]


def _code_correlation(table: Table) -> FloatArray:
    return pearson([*table.numbers.values(), *(codes.astype(np.float64) for codes in table.codes.values())])
