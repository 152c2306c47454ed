"""Every cell becomes something, by a rule that looks at nothing but that cell: what one row holds moves no other."""

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
from synth.errors import SchemaError
from synth.plan import parse_schema
from synth.schema import Boolean, Categorical, Column, Continuous, Datetime, Integer, Schema
from tests.synth.encoding.random_schemas import same, schemas

DAYS = {"min": dt.datetime(2020, 1, 1), "max": dt.datetime(2020, 1, 11)}
DAY = 86_400.0
LEFT_OUT: list[Any] = []
NAN = [np.nan]


def fitted(column: Column, cell: Any) -> list[Any]:
    records, _ = Codec(Schema(columns={"x": column})).fit(pd.DataFrame({"x": pd.Series([cell], dtype=object)}))
    return records.columns["x"].tolist()


@pytest.mark.parametrize(
    ("column", "cell", "becomes"),
    [
        (Integer(min=0, max=9), "12", [9]),
        (Integer(min=0, max=9), "-1e300", [0]),
        (Integer(min=0, max=9), "3.4", [3]),
        (Integer(min=0, max=9), "9.4", [9]),
        (Integer(min=0, max=9), "inf", LEFT_OUT),
        (Integer(min=0, max=9, unfit="nearest"), "-inf", [0]),
        (Integer(min=0, max=9, unfit="nearest"), "old", LEFT_OUT),
        (Integer(min=0, max=9, missing=True), "old", NAN),
        (Integer(min=0, max=9, missing=True), "inf", NAN),
        (Integer(min=0, max=9, missing=True), "12", [9]),
        (Integer(min=0, max=9, missing=True, unfit="missing"), "12", NAN),
        (Integer(min=0, max=9, unfit="leave-out"), "12", LEFT_OUT),
        (Integer(min=0, max=9, unfit="leave-out"), "3.4", LEFT_OUT),
        (Integer(min=0, max=9, unfit="leave-out"), "3", [3]),
        (Integer(min=0, max=9), "", LEFT_OUT),
        pytest.param(Integer(min=0, max=9), 10**5000, LEFT_OUT, id="a number that Python does not write out"),
        (Continuous(min=0, max=1), decimal.Decimal("sNaN"), LEFT_OUT),
        (Continuous(min=0, max=1), "1e308", [1.0]),
        (Continuous(min=0, max=1, missing=True), ["a", "list"], NAN),
        (Datetime(**DAYS), "1919-01-01", [0.0]),
        (Datetime(**DAYS), "9999-12-31", [10 * DAY]),
        (Datetime(**DAYS), dt.date(9999, 12, 31), [10 * DAY]),
        (Datetime(**DAYS), "today", LEFT_OUT),
        (Datetime(**DAYS), "2020-01-02T00:00:00+01:00", LEFT_OUT),
        (Datetime(**DAYS, unfit="leave-out"), "1919-01-01", LEFT_OUT),
        (Datetime(**DAYS, missing=True, unfit="missing"), "1919-01-01", NAN),
        (Categorical(categories=["a"]), "b", LEFT_OUT),
        (Categorical(categories=["a"], missing=True), "b", [1]),
        (Categorical(categories=["a"], other="rest"), "b", [1]),
        (Categorical(categories=["a"], other="rest"), None, LEFT_OUT),
        (Categorical(categories=["a"], other="rest", unfit="other"), None, [1]),
        (Categorical(categories=["a"], missing=True, unfit="leave-out"), "b", LEFT_OUT),
        (Categorical(categories=["a"], missing=True, unfit="leave-out"), "", [1]),
        (Boolean(), "maybe", LEFT_OUT),
        (Boolean(missing=True), "maybe", [2]),
        (Boolean(false="no", true="yes"), np.True_, [1]),
    ],
)
def test_the_rule(column: Column, cell: Any, becomes: list[Any]) -> None:
    np.testing.assert_array_equal(fitted(column, cell), becomes)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ({"kind": "integer", "min": 0, "max": 9, "unfit": "missing"}, "needs 'missing: true'"),
        ({"kind": "integer", "min": 0, "max": 9, "unfit": "other"}, "nearest"),
        ({"kind": "boolean", "unfit": "nearest"}, "leave-out"),
        ({"kind": "categorical", "categories": ["a"], "unfit": "other"}, "needs an 'other' label"),
        ({"kind": "identifier", "unfit": "leave-out"}, "unknown key"),
    ],
)
def test_a_rule_that_cannot_be_followed_is_refused(column: dict[str, Any], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        parse_schema({"columns": {"x": column, "y": {"kind": "boolean"}}})


def test_a_rule_that_is_not_given_is_in_no_digest_and_a_given_one_is() -> None:
    column = {"kind": "integer", "min": 0, "max": 9}
    plain = parse_schema({"columns": {"x": column}})
    # As in test_schema.py: pinned before the field existed.
    assert plain.digest() == "f1dc341b533542d7c2ced0f1abd943e77c570bee361fff77adc5ca853b5ca89c"
    assert "unfit" not in plain.model_dump_json()
    ruled = parse_schema({"columns": {"x": column | {"unfit": "nearest"}}})
    assert ruled.digest() != plain.digest()
    assert parse_schema(ruled.model_dump(mode="json")) == ruled


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.integers(-3, 12),
    st.floats(),
    st.decimals(),
    st.text(max_size=8),
    st.sampled_from(["1", "1.0", "-9", "0", "True", "nan", "inf", "1e999", "2020-01-03", "now", "Other", "9" * 400]),
    st.dates(),
    st.datetimes(timezones=st.one_of(st.none(), st.just(dt.UTC))),
    st.datetimes().map(pd.Timestamp),
    st.just(pd.Timestamp("2020-01-03 00:00:00.000000001")),
    st.just(pd.NaT),
    st.just(pd.NA),
    st.binary(max_size=4),
    st.lists(st.integers(), max_size=2),
)


def alone(codec: Codec, frame: pd.DataFrame) -> Records:
    """The rows read one by one, each in a table of its own with the same types."""
    parts = [codec.fit(frame.iloc[place : place + 1])[0] for place in range(len(frame))]
    return Records.concat([codec.fit(frame.iloc[:0])[0], *parts])


@settings(max_examples=150, deadline=None)
@given(schema=schemas(), data=st.data(), rows=st.integers(0, 5))
def test_every_row_of_objects_is_read_as_if_it_were_alone(schema: Schema, data: st.DataObject, rows: int) -> None:
    cells = {
        name: data.draw(st.lists(st.one_of(SCALARS, *labels(column)), min_size=rows, max_size=rows))
        for name, column in schema.columns.items()
    }
    frame = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in cells.items()})
    codec = Codec(schema)
    assert same(codec.fit(frame)[0], alone(codec, frame))


def labels(column: Column) -> list[st.SearchStrategy[str]]:
    return [st.sampled_from(column.labels)] if isinstance(column, Categorical | Boolean) else []


TYPES = {
    "str": st.text(max_size=5),
    "Int64": st.integers(-(2**63), 2**63 - 1),
    "int8": st.integers(-128, 127),
    "float64": st.floats(),
    "boolean": st.booleans(),
    "bool": st.booleans(),
    "datetime64[ns]": st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)),
    "datetime64[s]": st.datetimes(),
    "timedelta64[ns]": st.timedeltas(dt.timedelta(0), dt.timedelta(99)),
    "category": st.sampled_from(["1", 1, "Other", True]),
}


@settings(max_examples=100, deadline=None)
@given(schema=schemas(), data=st.data(), rows=st.integers(0, 5))
def test_every_row_of_typed_columns_is_read_as_if_it_were_alone(schema: Schema, data: st.DataObject, rows: int) -> None:
    frame = pd.DataFrame(index=range(rows))
    for name in schema.columns:
        kind = data.draw(st.sampled_from(sorted(TYPES)))
        may_be_empty = kind not in ("int8", "bool")
        cell = st.one_of(TYPES[kind], st.none()) if may_be_empty else TYPES[kind]
        frame[name] = pd.Series(data.draw(st.lists(cell, min_size=rows, max_size=rows)), dtype=kind)
    codec = Codec(schema)
    assert same(codec.fit(frame)[0], alone(codec, frame))


def test_one_time_in_nanoseconds_moves_no_other() -> None:
    column = Datetime(min=dt.datetime(1600, 1, 1), max=dt.datetime(2100, 1, 1), format="%Y-%m-%d %H:%M:%S.%f")
    cells = ["1600-01-03 00:00:00.5", "2020-01-01 00:00:00.123456789"]
    records, problems = Codec(Schema(columns={"x": column})).fit(pd.DataFrame({"x": cells}))
    assert records.columns["x"][0] == 2 * DAY
    assert problems == []


def test_a_long_code_is_the_same_label_beside_an_empty_cell() -> None:
    """As real numbers, which pandas makes of whole ones beside an empty cell, codes of 18 digits run together."""
    column = Categorical(categories=["900000000000207008"], missing=True)
    for cells in ([900000000000207008], [900000000000207008, None]):
        records, problems = Codec(Schema(columns={"x": column})).fit(pd.DataFrame({"x": pd.array(cells, "Int64")}))
        assert records.columns["x"][0] == 0
        assert problems == []
