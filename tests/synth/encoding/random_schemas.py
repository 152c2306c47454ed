"""Random public schemas and random rows that fit them, for property tests."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from synth.encoding.records import Records
from synth.encoding.scales import code_count, scale_of
from synth.schema import Boolean, Categorical, Column, Continuous, Datetime, Integer, Schema

LABELS = st.lists(st.text(alphabet="abc01 é.-", min_size=1, max_size=4), min_size=1, max_size=5, unique=True)
MOMENTS = st.datetimes(min_value=dt.datetime(1900, 1, 1), max_value=dt.datetime(2100, 1, 1))


@st.composite
def categoricals(draw: st.DrawFn) -> Column:
    return Categorical(
        categories=draw(LABELS), other=draw(st.sampled_from([None, "Other"])), missing=draw(st.booleans())
    )


@st.composite
def integers(draw: st.DrawFn) -> Column:
    lowest = draw(st.integers(-(10**6), 10**6))
    return Integer(min=lowest, max=lowest + draw(st.integers(0, 10**6)), missing=draw(st.booleans()))


@st.composite
def continuous(draw: st.DrawFn) -> Column:
    lowest = draw(st.floats(-1e5, 1e5))
    width = draw(st.floats(1e-3, 1e6))
    return Continuous(min=lowest, max=lowest + width, decimals=draw(st.integers(0, 6)), missing=draw(st.booleans()))


@st.composite
def datetimes(draw: st.DrawFn) -> Column:
    lowest, highest = sorted([draw(MOMENTS), draw(MOMENTS)])
    precision = draw(st.sampled_from(["day", "hour", "minute", "second"]))
    return Datetime(
        min=lowest, max=highest, precision=precision, format="%d.%m.%Y %H:%M:%S", missing=draw(st.booleans())
    )


def columns() -> st.SearchStrategy[Column]:
    booleans = st.builds(Boolean, false=st.just("no"), true=st.just("yes"), missing=st.booleans())
    return st.one_of(categoricals(), booleans, integers(), continuous(), datetimes())


def schemas() -> st.SearchStrategy[Schema]:
    return st.lists(columns(), min_size=1, max_size=5).map(
        lambda found: Schema(columns={f"c{number}": column for number, column in enumerate(found)})
    )


def random_records(schema: Schema, rows: int, seed: int) -> Records:
    """Uniform over every declared value, a fifth of the cells missing where that is declared."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, column in schema.released.items():
        if isinstance(column, Categorical | Boolean):
            found[name] = rng.integers(0, code_count(column), rows)
            continue
        scale = scale_of(column)
        values = scale.snap(rng.uniform(scale.lowest, scale.highest, rows))
        found[name] = np.where(rng.random(rows) < 0.2 * column.missing, np.nan, values)
    return Records(found)


def as_text(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame as a CSV reader that keeps text would give it."""
    return frame.astype(object).where(frame.notna(), "").map(str)


def same(first: Records, second: Records) -> bool:
    return list(first.columns) == list(second.columns) and all(
        np.array_equal(values, second.columns[name], equal_nan=values.dtype.kind == "f")
        for name, values in first.columns.items()
    )
