"""Copies: equal rows are recognised, coincidence is not held against a table, repeating people's rows is."""

from __future__ import annotations

from typing import Any

import numpy as np

from synth.assessment.copies import row_numbers, share_by_chance
from synth.encoding.cells import Cells
from synth.encoding.records import Codec, Records
from synth.plan import parse_schema
from tests.small import SCHEMA, table

SMALL = parse_schema(SCHEMA)
CELLS = Cells(SMALL, 32)


def people(rows: int, seed: int) -> Records:
    return Codec(SMALL).encode(table(rows, seed))


def test_equal_rows_have_equal_numbers_and_others_do_not() -> None:
    rows = people(2000, 1)
    numbers = row_numbers(CELLS, rows)
    np.testing.assert_array_equal(numbers[::-1], row_numbers(CELLS, rows.take(np.arange(2000)[::-1])))
    written = Codec(SMALL).decode(rows)
    distinct = len(written.drop_duplicates())
    assert len(np.unique(numbers)) == distinct  # two different rows share a number once in 10^13 such tables


def test_one_other_cell_is_another_row() -> None:
    rows = people(200, 2)
    for name in rows.columns:
        low = CELLS.scales[name].lowest if name in CELLS.scales else 0
        other: Any = np.where(rows.columns[name] == low, low + 1, low).astype(rows.columns[name].dtype)
        assert not np.isin(row_numbers(CELLS, Records(rows.columns | {name: other})), row_numbers(CELLS, rows)).any()


def test_strangers_do_not_meet_rows_of_many_details() -> None:
    """A table that repeats people's rows would have a copy share near 1 here, so its excess is near 1."""
    assert share_by_chance(CELLS, people(3000, 3), seed=0) < 0.01


def test_coincidence_in_a_coarse_table_is_expected() -> None:
    """Strangers from the same population meet their like as often as chance says (5 standard errors: 0.04)."""
    columns = {name: SCHEMA["columns"][name] for name in ("sex", "ward", "smoker", "died")}
    coarse = parse_schema({"columns": columns | {"age": {"kind": "integer", "min": 0, "max": 100}}})
    codec, cells = Codec(coarse), Cells(coarse, 32)
    names = list(coarse.columns)
    made, strangers = (codec.encode(table(1500, seed)[names]) for seed in (4, 5))
    met = np.isin(row_numbers(cells, strangers), row_numbers(cells, made)).mean()
    assert 0.2 < met < 0.9
    assert abs(share_by_chance(cells, made, seed=1) - met) < 0.05
