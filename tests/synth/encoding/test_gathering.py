"""Rows to records and back: nothing is lost but what the plan leaves out, and nobody is in more than it says."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.encoding.gathering import OwnedRows, gathered
from synth.encoding.records import Codec, Records
from synth.encoding.unrolling import unrolled, written
from synth.layout import LENGTH, Layout, layout_of
from synth.plan import parse_schema
from synth.privacy.coin import Coin
from synth.privacy.noise import seeded_source
from synth.schema import Schema

COLUMNS = {
    "who": {"kind": "identifier"},
    "when": {"kind": "integer", "min": 0, "max": 1000},
    "sex": {"kind": "categorical", "categories": ["f", "m"]},
    "ward": {"kind": "categorical", "categories": ["a", "b", "c"]},
    "amount": {"kind": "integer", "min": -50, "max": 50},
    "level": {"kind": "continuous", "min": 0, "max": 1, "decimals": 2},
}


def schema_with(**sequence: Any) -> Schema:
    return parse_schema({"columns": COLUMNS, "sequence": {"entity": "who", "time": "when"} | sequence})


def layout_with(**sequence: Any) -> Layout:
    layout = layout_of(schema_with(**sequence), "subject", 1)
    assert layout is not None
    return layout


def owned(schema: Schema, table: pd.DataFrame) -> OwnedRows:
    places, names = pd.factorize(table["who"])
    rows = Codec(schema).encode(table.astype(str))
    time = table["when"].to_numpy(dtype=np.float64) if schema.sequence is not None else None
    return OwnedRows(rows, [str(n) for n in names], places.astype(np.int64), time, np.ones(len(table), dtype=bool))


def coin(seed: int = 1) -> Any:
    return Coin(seeded_source(seed)).draws


@st.composite
def tables(draw: st.DrawFn, most: int = 9) -> pd.DataFrame:
    """People with 1 to `most` rows each, in any order."""
    sizes = draw(st.lists(st.integers(1, most), min_size=1, max_size=6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    who = np.repeat(np.arange(len(sizes)), sizes)
    sexes = rng.choice(["f", "m"], len(sizes))
    table = pd.DataFrame(
        {
            "who": [f"p{each}" for each in who],
            "when": np.concatenate([rng.permutation(size) for size in sizes]),
            "sex": sexes[who],
            "ward": rng.choice(["a", "b", "c"], len(who)),
            "amount": rng.integers(-50, 51, len(who)),
            "level": rng.integers(0, 101, len(who)) / 100,
        }
    )
    return table.iloc[rng.permutation(len(table))].reset_index(drop=True)


@settings(max_examples=30)
@given(tables(), st.sampled_from(["level", "increments", "deviations"]))
def test_long_format_comes_back_whole(table: pd.DataFrame, how: str) -> None:
    layout = layout_with(length=9, static=["sex"], encode={"amount": how, "level": how})
    records = gathered(layout, owned(layout.table, table), coin())
    assert len(records) == table["who"].nunique()
    back = written(layout.table, layout, records)
    expected = table.sort_values(["who", "when"])
    first_seen = {who: n for n, who in enumerate(pd.unique(table["who"]))}
    expected = expected.sort_values("who", key=lambda names: names.map(first_seen), kind="stable")
    for name in ("sex", "ward", "amount"):
        assert back[name].tolist() == expected[name].tolist()
    np.testing.assert_allclose(back["level"], expected["level"], atol=0.0051)
    assert back.columns.tolist() == list(COLUMNS)
    assert (back.groupby("who")["when"].apply(lambda steps: steps.tolist() == list(range(1, len(steps) + 1)))).all()


@settings(max_examples=30)
@given(tables(most=12), st.integers(1, 3), st.integers(1, 4), st.integers(1, 4))
def test_nobody_is_in_more_records_than_the_plan_says(table: pd.DataFrame, most: int, length: int, stride: int) -> None:
    layout = layout_with(length=length + 1, max_windows=most, stride=stride)
    records = gathered(layout, owned(layout.table, table), coin())
    assert len(records) <= most * table["who"].nunique()
    assert len(records) >= table["who"].nunique()
    assert records.columns[LENGTH].max() <= length + 1


@settings(max_examples=30)
@given(tables(), st.integers(1, 4), st.integers(0, 100))
def test_a_person_with_a_thousand_rows_changes_one_record(table: pd.DataFrame, rows: int, seed: int) -> None:
    """The attack on contribution bounding: whatever somebody brings, and wherever in the file, others stay."""
    schema = parse_schema({"columns": COLUMNS, "subject": "who"})
    layout = layout_of(schema, "subject", rows)
    assert layout is not None
    rng = np.random.default_rng(seed)
    flood = table.iloc[rng.integers(0, len(table), 1000)].assign(who="the victim")
    places = np.sort(rng.random(len(table)))  # others keep their order among themselves
    both = pd.concat([table, flood]).iloc[np.argsort(np.concatenate([places, rng.random(1000)]))]
    without = as_multiset(gathered(layout, owned(schema, table), coin(seed)))
    with_them = as_multiset(gathered(layout, owned(schema, both.reset_index(drop=True)), coin(seed)))
    assert sum((with_them - without).values()) == 1
    assert not without - with_them


def test_a_blank_step_is_in_no_pair_and_nothing_closes_over_it() -> None:
    layout = layout_of(schema_with(length=5, unit="step"), "step", 1)
    assert layout is not None
    table = pd.DataFrame(
        {"who": "p", "when": range(5), "sex": "f", "ward": "a", "amount": [1, 2, 4, 7, 11], "level": 0.5}
    )
    whole = owned(layout.table, table)
    records = gathered(layout, whole, coin())
    assert records.columns["amount@2"].tolist() == [1, 2, 3, 4]
    fits = np.array([True, True, False, True, True])
    blanked = gathered(layout, OwnedRows(whole.rows, whole.names, whole.owner, whole.time, fits), coin())
    assert blanked.columns["amount@2"].tolist() == [1, 4]
    lost = as_multiset(records) - as_multiset(blanked)
    assert sum(lost.values()) == layout.records_per_unit == 2
    assert not as_multiset(blanked) - as_multiset(records)


def test_which_rows_are_used_is_the_coins_affair() -> None:
    schema = parse_schema({"columns": COLUMNS, "subject": "who"})
    layout = layout_of(schema, "subject", 1)
    assert layout is not None
    table = pd.DataFrame({"who": "p", "when": 0, "sex": "f", "ward": "a", "amount": range(50), "level": 0.5})
    seen = {float(gathered(layout, owned(schema, table), coin(n)).columns["amount"][0]) for n in range(40)}
    assert len(seen) > 15


def test_records_that_contradict_themselves_become_rows_all_the_same() -> None:
    """A model draws absent cells where there are none, and increments beyond the bounds."""
    layout = layout_with(length=3, encode={"amount": "increments", "level": "deviations"})
    records = Records(
        {
            LENGTH: np.array([3.0, 1.0]),
            "level@mean": np.array([0.5, 0.9]),
            **{f"sex@{t}": np.array([2, 0]) for t in (1, 2, 3)},
            **{f"ward@{t}": np.array([t % 4, 3]) for t in (1, 2, 3)},
            **{f"amount@{t}": np.array([np.nan if t == 1 else 90.0, -70.0]) for t in (1, 2, 3)},
            **{f"level@{t}": np.array([np.nan, 0.7]) for t in (1, 2, 3)},
        }
    )
    rows, owner, step = unrolled(layout, records)
    assert (owner.tolist(), step.tolist()) == ([0, 0, 0, 1], [1, 2, 3, 1])
    Codec(layout.table).encode(Codec(layout.table).decode(rows).astype(str))  # fits the schema, every cell
    assert rows.columns["level"].tolist() == [0.5, 0.5, 0.5, 1.0]


def as_multiset(records: Records) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(map(str, values) for values in records.columns.values()), strict=True))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"entity": "sex", "length": 2}, "kind identifier"),
        ({"time": "ward", "length": 2}, "integer, continuous or datetime"),
        ({"static": ["nobody"], "length": 2}, "no released columns"),
        ({"encode": {"ward": "increments"}, "length": 2}, "can only be 'level'"),
        ({"length": 2, "shortest": 3}, "more than length"),
        ({"length": 2, "unit": "step", "max_windows": 2}, "no windows to choose"),
        ({"length": 2, "static": ["sex", "ward", "amount", "level"]}, "every column is static"),
    ],
)
def test_a_sequence_that_makes_no_sense_is_refused(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(Exception, match=told):
        schema_with(**wrong)
