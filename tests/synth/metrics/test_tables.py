"""What the metrics can read, and what they refuse in words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.errors import InputError
from synth.metrics.tables import bin_edges, public_bins, table_of
from synth.schema import Continuous, Integer, Schema


def test_cells_become_codes_numbers_and_an_empty_category(patients: pd.DataFrame, clinic: Schema) -> None:
    table = table_of(patients, clinic)
    assert table.codes["ward"].tolist() == [0, 0, 1, 3]
    assert np.isnan(table.numbers["dose"][3])
    assert table.discretized("dose").tolist() == [0, 16, 31, 32]
    assert table.cells("dose") == 33
    assert table_of(table, clinic) is table


@given(st.integers(-50, 50), st.integers(0, 200))
def test_every_integer_of_the_domain_falls_inside_its_bin(low: int, width: int) -> None:
    column = Integer(min=low, max=low + width)
    values = np.arange(low, low + width + 1, dtype=np.float64)
    bins, edges = public_bins(values, column), bin_edges(column)
    assert (bins >= 0).all()
    assert (bins < len(edges) - 1).all()
    if width < 32:
        assert bins.tolist() == list(range(width + 1))


def test_values_outside_the_domain_count_in_the_end_bins() -> None:
    bins = public_bins(np.array([-5.0, 99.0, np.nan]), Continuous(min=0, max=1))
    assert bins.tolist() == [0, 31, 32]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: f.drop(columns="age"), "lacks column 'age'"),
        (lambda f: f.assign(extra=1), "has column 'extra'"),
        (lambda f: f.assign(age="old"), "not numbers"),
        (lambda f: f.assign(ward="z"), "undeclared labels"),
        (lambda f: f.assign(age=[1, 2, 3, None]), "empty cells"),
        (lambda f: f.assign(dose=np.inf), "infinite"),
        (lambda f: f.iloc[:0], "no rows"),
        (lambda f: pd.concat([f, f[["age"]]], axis=1), "two columns of one name"),
    ],
)
def test_unreadable_tables_are_refused_in_words(change, said: str, patients: pd.DataFrame, clinic: Schema) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=said):
        table_of(change(patients), clinic, "the synthetic table")


def test_a_number_out_of_bounds_is_measured_not_refused(patients: pd.DataFrame, clinic: Schema) -> None:
    assert table_of(patients.assign(age=500), clinic).numbers["age"].tolist() == [500.0] * 4
