"""Association matrices against hand calculations, and the distances between them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from synth.metrics.contingency import Contingency, cramers_v, theils_u
from synth.metrics.fidelity_pairs import (
    association_kept,
    associations,
    correlation_ratio,
    matrix_distance,
    mean_absolute_difference,
    pcd,
    pearson,
)
from synth.schema import Categorical, Continuous, Schema

FOUR = Schema(
    columns={
        "x": Continuous(min=-10, max=10),
        "z": Continuous(min=-10, max=10),
        "g": Categorical(categories=["u", "v"]),
        "h": Categorical(categories=["s", "t"]),
    }
)
TOGETHER = pd.DataFrame({"x": [1.0, 1.0, 3.0, 3.0], "z": [2.0, 2.0, 6.0, 6.0], "g": list("uuvv"), "h": list("sstt")})
APART = pd.DataFrame({"x": [1.0, 3.0, 1.0, 3.0], "z": [2.0, 2.0, 6.0, 6.0], "g": list("uvvu"), "h": list("sstt")})


def _table(counts: list[list[int]]) -> Contingency:
    """The contingency table of columns with these counts."""
    rows, columns = np.indices(np.shape(counts))
    return Contingency.of(np.repeat(rows, np.ravel(counts)), np.repeat(columns, np.ravel(counts)))


def test_cramers_v_by_hand() -> None:
    assert cramers_v(_table([[2, 0], [0, 2]])) == pytest.approx(1.0)
    assert cramers_v(_table([[1, 1], [1, 1]])) == 0.0
    # chi2 = 40 * (15*15 - 5*5)^2 / 20^4 = 10, V = sqrt(10 / 40)
    assert cramers_v(_table([[15, 5], [5, 15]])) == pytest.approx(0.5)
    # corrected: phi2 = 1/4 - 1/39; smaller dimension = 2 - 1/39 - 1
    assert cramers_v(_table([[15, 5], [5, 15]]), corrected=True) == pytest.approx(
        np.sqrt((0.25 - 1 / 39) / (1 - 1 / 39))
    )
    assert cramers_v(_table([[3, 4]])) == 0.0


def test_theils_u_by_hand_and_not_symmetric() -> None:
    counts = _table([[1, 1, 0, 0], [0, 0, 1, 1]])  # the column tells the row, the row halves the column
    assert theils_u(counts) == pytest.approx(1.0)
    assert theils_u(counts.transposed()) == pytest.approx(0.5)
    assert theils_u(_table([[1, 1], [1, 1]])) == pytest.approx(0.0)
    assert theils_u(_table([[2, 3]])) == 1.0


def test_correlation_ratio_by_hand() -> None:
    values, groups = np.array([1.0, 3.0, 5.0, 7.0]), np.array([0, 0, 1, 1])
    # between = 2 * 2^2 + 2 * 2^2 = 16, total = 9 + 1 + 1 + 9 = 20
    assert correlation_ratio(values, groups) == pytest.approx(np.sqrt(16 / 20))
    assert correlation_ratio(np.array([np.nan, 2.0, 2.0]), np.array([0, 1, 1])) == 0.0


def test_pearson_skips_empty_cells_and_constants() -> None:
    nan = np.nan
    matrix = pearson([np.array([1.0, 2.0, 3.0, nan]), np.array([2.0, 4.0, 6.0, 0.0]), np.full(4, 0.1)])
    assert matrix[0, 1] == pytest.approx(1.0)
    assert matrix[0, 2] == matrix[1, 2] == 0.0
    assert np.diag(matrix).tolist() == [1.0, 1.0, 1.0]


def test_distances_between_matrices() -> None:
    together, apart = associations(TOGETHER, FOUR), associations(APART, FOUR)
    assert pcd(together, together) == 0.0
    assert mean_absolute_difference(together, apart) == pytest.approx((1 + 1 + 1 + 1 + 1 + 0) / 6)
    # Every pair but (z, h) falls from 1 to 0 (V is corrected: 1 stays 1, 0 stays 0); each counts twice.
    assert together.mixed()[0, 1] == pytest.approx(1.0)
    assert association_kept(together, together) == 1.0
    assert association_kept(together, apart) == pytest.approx(1 / 6)
    assert pcd(together, apart) == pytest.approx(np.sqrt(2 * 5))
    assert matrix_distance(TOGETHER, TOGETHER, FOUR) == pytest.approx(0.0, abs=1e-12)
    # R all ones (norm 4), S = identity plus the pair (z, h) (norm sqrt 6), trace of the product 6.
    assert matrix_distance(TOGETHER, APART, FOUR) == pytest.approx(1 - 6 / (4 * np.sqrt(6)))


def test_constant_columns_give_numbers_not_nan() -> None:
    constant = TOGETHER.assign(x=1.0, g="u")
    matrix = associations(constant, FOUR).mixed()
    assert np.isfinite(matrix).all()
    assert np.isfinite(matrix_distance(TOGETHER, constant, FOUR))


def test_a_table_without_association_has_none_to_keep() -> None:
    constant = associations(TOGETHER.assign(x=1.0, z=1.0, g="u", h="s"), FOUR)
    assert association_kept(constant, associations(TOGETHER, FOUR)) is None


def test_columns_of_many_labels_are_counted_by_what_occurs() -> None:
    labels = np.arange(3000)
    everywhere = Contingency.of(labels, labels[::-1])
    assert len(everywhere.counts) == 3000
    assert cramers_v(everywhere) == pytest.approx(1.0)
    assert theils_u(everywhere) == pytest.approx(1.0)


def test_pearson_with_empty_cells_is_that_of_the_rows_where_both_are_filled() -> None:
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(5, 400)) * [[1], [1e6], [1e-3], [5], [1]]
    columns[1] += 3e8  # far from 0: sums of squares would lose their digits
    columns[3] += 3 * columns[0]
    columns[rng.random(columns.shape) < 0.1] = np.nan
    columns[4] = np.nan
    columns[2, ~np.isnan(columns[0])] = 5.0  # constant where the first is filled
    found = pearson(list(columns))
    for i, j in ((0, 1), (0, 3), (1, 3)):
        both = ~np.isnan(columns[i]) & ~np.isnan(columns[j])
        assert found[i, j] == pytest.approx(np.corrcoef(columns[i, both], columns[j, both])[0, 1], abs=1e-12)
    assert found[0, 2] == 0.0
    assert not found[4, :4].any()
