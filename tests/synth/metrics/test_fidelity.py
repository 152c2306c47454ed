"""Distances worked out by hand on tables of a few rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from synth.metrics.fidelity import jsd, tvd_by_pair, tvd_one_way, tvd_two_way, wd, wd_by_column
from synth.metrics.fidelity_columns import hellinger_by_column, ks_by_column
from synth.schema import Categorical, Continuous, Integer, Schema


def test_equal_tables_are_at_distance_zero(patients: pd.DataFrame, clinic: Schema) -> None:
    for metric in (jsd, wd, tvd_one_way, tvd_two_way):
        assert metric(patients, patients, clinic) == pytest.approx(0.0, abs=1e-12)


def test_jsd_is_the_base_two_distance_over_the_union_of_supports(ward_only: Schema) -> None:
    left = pd.DataFrame({"ward": ["a", "b"]})
    assert jsd(left, pd.DataFrame({"ward": ["c", None]}), ward_only) == pytest.approx(1.0)
    # P = (1, 0), Q = (1/2, 1/2): M = (3/4, 1/4); divergence = (log2(4/3) + (log2(2/3) + log2 2) / 2) / 2
    divergence = (np.log2(4 / 3) + (np.log2(2 / 3) + 1) / 2) / 2
    assert jsd(pd.DataFrame({"ward": ["a", "a"]}), left, ward_only) == pytest.approx(np.sqrt(divergence))


def test_wd_is_scaled_by_the_real_range_and_not_clipped() -> None:
    schema = Schema(columns={"x": Integer(min=-1000, max=1000)})
    real, synthetic = pd.DataFrame({"x": [0, 10]}), pd.DataFrame({"x": [20, 30]})
    assert wd(real, synthetic, schema) == pytest.approx(2.0)


def test_wd_of_a_constant_real_column_uses_the_declared_range() -> None:
    schema = Schema(columns={"x": Integer(min=0, max=100)})
    assert wd(pd.DataFrame({"x": [5, 5]}), pd.DataFrame({"x": [15, 15]}), schema) == pytest.approx(0.1)


def test_a_numeric_column_that_was_emptied_is_its_whole_range_away(clinic: Schema, patients: pd.DataFrame) -> None:
    empty = patients.assign(dose=None)
    for by_column in (wd_by_column, ks_by_column):
        assert by_column(patients, empty, clinic)["dose"] == 1.0
        assert by_column(empty, patients, clinic)["dose"] == 1.0
        assert by_column(empty, empty, clinic)["dose"] is None
    assert wd(patients, empty, clinic) == pytest.approx(0.5)  # the mean with the other column
    assert wd(empty, empty, clinic) == pytest.approx(0.0)  # of the other column alone
    # One of four doses is empty: of the cells, 3/4 are filled on one side and none on the other.
    assert hellinger_by_column(patients, empty, clinic)["dose"] == pytest.approx(np.sqrt((0.75 + (1 - 0.5) ** 2) / 2))
    assert hellinger_by_column(empty, empty, clinic)["dose"] == 0.0


def test_total_variation_counts_missing_and_bins(ward_only: Schema) -> None:
    assert tvd_one_way(
        pd.DataFrame({"ward": ["a", "b"]}), pd.DataFrame({"ward": ["a", None]}), ward_only
    ) == pytest.approx(0.5)
    assert tvd_two_way(pd.DataFrame({"ward": ["a"]}), pd.DataFrame({"ward": ["b"]}), ward_only) is None
    schema = Schema(columns={"x": Continuous(min=0, max=32)})
    real = pd.DataFrame({"x": [0.1, 31.9, 5.0, 5.9]})
    assert tvd_one_way(real, pd.DataFrame({"x": [0.9, 32.0, 5.5, 6.0]}), schema) == pytest.approx(0.25)


def test_pairs_see_what_columns_do_not() -> None:
    schema = Schema(columns={n: Categorical(categories=["0", "1"]) for n in ("p", "q")})
    together = pd.DataFrame({"p": [0, 0, 1, 1], "q": [0, 0, 1, 1]})
    independent = pd.DataFrame({"p": [0, 0, 1, 1], "q": [0, 1, 0, 1]})
    assert tvd_one_way(together, independent, schema) == 0.0
    assert tvd_by_pair(together, independent, schema) == {("p", "q"): pytest.approx(0.5)}


def test_pairs_of_many_labels_count_only_what_occurs() -> None:
    labels = [str(k) for k in range(2000)]  # 2001 x 2001 cells
    schema = Schema(columns={n: Categorical(categories=labels) for n in ("p", "q")})
    rows = pd.DataFrame({"p": labels, "q": labels})
    assert tvd_two_way(rows, rows.assign(q=labels[1:] + labels[:1]), schema) == pytest.approx(1.0)
    assert tvd_two_way(rows, rows.iloc[:1000], schema) == pytest.approx(0.5)
