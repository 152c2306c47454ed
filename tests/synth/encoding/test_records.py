"""Cells in, numbers out, the same cells back; and nothing but row numbers about a cell that does not fit."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.encoding.records import Codec, Records
from synth.errors import DataError, SchemaError
from synth.plan import parse_schema
from synth.schema import Boolean, Categorical, Column, Continuous, Datetime, Identifier, Integer, Schema
from tests.synth.encoding.random_schemas import as_text, random_records, same, schemas

YEAR = {"min": dt.datetime(2020, 1, 1), "max": dt.datetime(2020, 12, 31)}


def codec(column: Column, **settings: Any) -> Codec:
    return Codec(Schema(columns={"x": column}, **settings))


def read(column: Column, cells: Any, **settings: Any) -> list[Any]:
    return codec(column, **settings).encode(pd.DataFrame({"x": cells})).columns["x"].tolist()


@settings(max_examples=150, deadline=None)
@given(schema=schemas(), rows=st.integers(0, 30), seed=st.integers(0, 99))
def test_every_declared_value_survives_writing_and_reading(schema: Schema, rows: int, seed: int) -> None:
    records = random_records(schema, rows, seed)
    frame = Codec(schema).decode(records)
    assert same(Codec(schema).encode(frame), records)
    assert same(Codec(schema).encode(as_text(frame)), records)
    pd.testing.assert_frame_equal(Codec(schema).decode(Codec(schema).encode(frame)), frame)


@given(cells=st.lists(st.floats(-5, 5), min_size=1), decimals=st.integers(0, 9))
def test_real_numbers_come_back_at_the_declared_decimals(cells: list[float], decimals: int) -> None:
    again = codec(Continuous(min=-5, max=5, decimals=decimals))
    frame = again.decode(again.encode(pd.DataFrame({"x": cells})))
    np.testing.assert_array_equal(frame["x"].to_numpy(), np.round(cells, decimals))


@pytest.mark.parametrize(
    "cells",
    [
        ["1", "0", "2"],
        ["1.0", "0.0", "2.00"],
        [1, 0, 2],
        [1.0, 0.0, 2.0],
        pd.Categorical(["1", "0", "2"]),
        pd.array([1, 0, 2], dtype="Int64"),
        np.array([1, 0, 2], dtype=np.int8),
    ],
)
def test_a_numeric_label_is_the_same_however_it_is_stored(cells: Any) -> None:
    assert read(Categorical(categories=["0", "1", "2"]), cells) == [1, 0, 2]


@pytest.mark.parametrize("cells", [[True, False], ["yes", "no"], pd.array([True, False], dtype="boolean")])
def test_booleans_are_read_typed_or_as_written(cells: Any) -> None:
    assert read(Boolean(false="no", true="yes"), cells) == [1, 0]


@pytest.mark.parametrize(
    "cells",
    [
        ["2020-01-03", "2020-12-31"],
        [dt.date(2020, 1, 3), dt.date(2020, 12, 31)],
        [dt.datetime(2020, 1, 3, 23, 59), dt.datetime(2020, 12, 31, 1)],
        pd.to_datetime(["2020-01-03 23:59", "2020-12-31 00:00"]),
    ],
)
def test_a_time_is_the_day_it_lies_in(cells: Any) -> None:
    assert read(Datetime(**YEAR), cells) == [2 * 86_400.0, 365 * 86_400.0]


def test_decimals_of_a_database_are_numbers() -> None:
    assert read(Continuous(min=0, max=9), [decimal.Decimal("1.25"), decimal.Decimal("3")]) == [1.25, 3.0]


def test_undeclared_labels_become_other() -> None:
    assert read(Categorical(categories=["a"], other="rest"), ["zebra", "a", "rest"]) == [1, 0, 1]


@pytest.mark.parametrize("cells", [["-9", "3", ""], [-9, 3, np.nan], [-9, 3, None], pd.array([-9, 3, None], "Int64")])
def test_every_spelling_of_empty_is_empty(cells: Any) -> None:
    values = read(Integer(min=0, max=5, missing=True), cells, missing_values=["", "-9"])
    np.testing.assert_array_equal(values, [np.nan, 3, np.nan])
    assert read(Categorical(categories=["3"], missing=True), cells, missing_values=["", "-9"]) == [1, 0, 1]


@pytest.mark.parametrize(
    ("column", "cells", "what"),
    [
        (Categorical(categories=["a"]), ["a", "secret"], "undeclared labels"),
        (Boolean(), ["True", "secret"], "undeclared labels"),
        (Categorical(categories=["a"]), ["a", ""], "empty cells"),
        (Integer(min=0, max=5), ["1", "NA"], "empty cells"),
        (Continuous(min=0, max=5), [1.0, None], "empty cells"),
        (Datetime(**YEAR), ["2020-02-01", None], "empty cells"),
        (Integer(min=0, max=5), ["1", "4711"], "numbers above 5"),
        (Integer(min=0, max=5), ["1", "2.5"], "not whole"),
        (Integer(min=0, max=5), ["1", "secret"], "not numbers"),
        (Integer(min=0, max=5), [1, np.inf], "infinite"),
        (Continuous(min=0, max=5), ["1", "-inf"], "infinite"),
        (Continuous(min=0, max=5), ["1", "47,11"], "not numbers"),
        (Continuous(min=0, max=5), ["1", "nan"], "not numbers"),
        (Continuous(min=0, max=5), ["1", "5.02"], "numbers above 5"),
        (Datetime(**YEAR), ["2020-02-01", "4711-01-01"], "times above"),
        (Datetime(**YEAR), ["2020-02-01", "secret"], "not times"),
        (Datetime(**YEAR), ["2020-02-01", "2020-02-30"], "not times"),
        (Datetime(**YEAR), [dt.datetime(2020, 2, 1), dt.datetime(2020, 2, 1, tzinfo=dt.UTC)], "not times"),
    ],
)
def test_unfit_cells_are_refused_by_row_number_and_never_shown(column: Column, cells: Any, what: str) -> None:
    frame = pd.DataFrame({"x": pd.Series(cells)})
    (problem,) = codec(column).problems(frame)
    assert what in problem.what
    assert (problem.column, problem.cells, problem.rows) == ("x", 1, (3,))
    with pytest.raises(DataError) as refused:
        codec(column).encode(frame)
    assert "secret" not in str(refused.value)
    assert "47" not in str(refused.value)


def test_a_text_for_an_empty_number_may_be_declared() -> None:
    frame = pd.DataFrame({"x": ["1", "nan"]})
    (problem,) = codec(Continuous(min=0, max=5)).problems(frame)
    assert "leave the cell empty, or declare the text under missing_values" in problem.remedy
    assert not codec(Continuous(min=0, max=5, missing=True), missing_values=["nan"]).problems(frame)


def test_counts_are_whole_but_only_a_few_rows_are_listed() -> None:
    (problem,) = codec(Integer(min=0, max=1)).problems(pd.DataFrame({"x": [9] * 100}))
    assert problem.cells == 100
    assert problem.rows == (2, 3, 4, 5, 6)
    assert str(problem).count("…") == 1


def test_all_problems_are_reported_at_once() -> None:
    schema = Schema(columns={"a": Integer(min=0, max=1), "b": Integer(min=0, max=1), "c": Boolean()})
    frame = pd.DataFrame({"a": [0, 7], "b": [8, 9], "extra": [0, 0]})
    found = [(problem.column, problem.cells) for problem in Codec(schema).problems(frame)]
    assert found == [("c", 0), ("extra", 0), ("a", 1), ("b", 2)]


def test_identifiers_are_dropped_present_or_not() -> None:
    schema = Schema(columns={"name": Identifier(), "a": Integer(min=0, max=1)})
    assert list(Codec(schema).encode(pd.DataFrame({"name": ["Ann"], "a": ["1"]})).columns) == ["a"]
    assert list(Codec(schema).encode(pd.DataFrame({"a": ["1"]})).columns) == ["a"]


def test_a_wrong_separator_is_recognised() -> None:
    schema = Schema(columns={"a": Integer(min=0, max=1), "b": Boolean()})
    (problem,) = Codec(schema).problems(pd.DataFrame({"a;b": ["1;True"]}))
    assert "separator" in problem.remedy


def test_a_repeated_column_is_refused() -> None:
    frame = pd.DataFrame([[1, 1]], columns=["x", "x"])
    (problem,) = codec(Integer(min=0, max=1)).problems(frame)
    assert "more than once" in problem.what


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (Datetime(**YEAR, precision="hour"), "format"),
        (Datetime(**YEAR, format="%Y-%m-%d %z"), "format"),
        (Integer(min=0, max=10**18), "digits"),
        (Continuous(min=0, max=1e9, decimals=12), "fewer decimals"),
        (Categorical(categories=["NA", "DE"]), "missing_values"),
    ],
)
def test_schemas_that_cannot_be_inverted_are_refused(column: Column, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        codec(column)


def test_take_and_concat_keep_rows_together() -> None:
    schema = Schema(columns={"a": Integer(min=0, max=99), "b": Categorical(categories=["u", "v"])})
    records = random_records(schema, 20, seed=1)
    order = np.random.default_rng(0).permutation(20)
    assert same(Records.concat([records.take(slice(0, 5)), records.take(np.arange(5, 20))]), records)
    assert same(records.take(order).take(np.argsort(order)), records)
    assert len(records.take(records.columns["b"] == 1)) == int(records.columns["b"].sum())


def test_blanks_around_a_text_mean_nothing_unless_a_label_has_them() -> None:
    """Columns of fixed width; otherwise a draft would declare labels that no cell of its own table fits."""
    content: dict[str, Any] = {"columns": {"ward": {"kind": "categorical", "categories": ["A", "B"], "missing": True}}}
    codes = Codec(parse_schema(content)).encode(pd.DataFrame({"ward": ["A ", " B", "A", "  ", "\tNA "]})).columns
    assert codes["ward"].tolist() == [0, 1, 0, 2, 2]
    content["columns"]["ward"]["categories"] = ["A ", "A", " "]
    codes = Codec(parse_schema(content)).encode(pd.DataFrame({"ward": ["A ", "A", " ", ""]})).columns
    assert codes["ward"].tolist() == [0, 1, 2, 3]
