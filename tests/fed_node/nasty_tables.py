"""Tables of cells that engines read differently, if one lets them, and the schemas they are held against."""

from __future__ import annotations

import datetime as dt
import decimal
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from synth.encoding.bins import Bins
from synth.encoding.cells import Cells
from synth.encoding.contingency import Clique
from synth.encoding.fine_cells import FineCells
from synth.plan import parse_schema
from synth.schema import Schema

REALS = [0.0, -0.0, 0.5, 1.0, 1.5, 2.5, 0.005, 0.015, 1.005, 2.675, -9.0, 99.995, 100.005, -1e308, 1e308, 5e-324, 1e17]
REALS += [float("nan"), float("inf"), float("-inf"), 2.0**53, 1e-300, 49.994999999999997, 3.0]
WHOLES = [0, 1, -1, 2, -3, 3, -9, 50, 100, 101, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)]
TEXTS = ["a", " a", "a ", "A", "b'c", "é", "e\u0301", "3", "3.0", "3.00", "3.", "03", "-3.0", "3.0 ", "3.0\n", "NA", ""]
TEXTS += ["null", "\ufffd", "rest", "a.0", "10", "1e1", "\u0663.0", "x" * 300, "inf", '"', "\\", "%"]
DAYS = [dt.date(2020, 1, 1), dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2020, 12, 31), dt.date(2021, 1, 1)]
DAYS += [dt.date(1969, 12, 31), dt.date(2020, 2, 29)]
MOMENTS = [
    dt.datetime(2020, 1, 1),
    dt.datetime(2019, 12, 31, 23, 59, 59, 999999),
    dt.datetime(1969, 12, 31, 23, 59, 59, 1),
]
MOMENTS += [dt.datetime(2020, 6, 1, 12, 30, 15, 5), dt.datetime(2020, 12, 31, 23, 59, 59, 999999), dt.datetime(1, 1, 1)]
MOMENTS += [dt.datetime(2021, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)]
DECIMALS = [decimal.Decimal(text) for text in ("0.00", "1.01", "-9.00", "99.99", "100.00", "12345678.90", "0.50")]

NUMBER = [{}, {"missing": True}, {"unfit": "leave-out"}, {"missing": True, "unfit": "missing"}, {"unfit": "nearest"}]
LABEL = [
    {},
    {"missing": True},
    {"other": "rest"},
    {"other": "rest", "unfit": "other"},
    {"missing": True, "other": "rest"},
]
LABEL += [{"missing": True, "unfit": "leave-out"}]
TRUTH = [{}, {"missing": True}, {"missing": True, "unfit": "missing"}]
HUNDRED = {"kind": "integer", "min": -5, "max": 100}
AMOUNT = {"kind": "continuous", "min": -2, "max": 100, "decimals": 2}
WIDE = {"kind": "continuous", "min": 0, "max": 1e8, "decimals": 2}
YEAR = {"kind": "datetime", "min": "2020-01-01", "max": "2020-12-31"}
SECONDS = YEAR | {"precision": "second", "format": "%Y-%m-%d %H:%M:%S"}
CODES = {"kind": "categorical", "categories": ["3", "1", "-3", "100", "x"]}

# name: (Arrow type, cells, declared as, rules)
COLUMNS: dict[str, tuple[Any, list[Any], dict[str, Any], list[dict[str, Any]]]] = {
    "whole": (pa.int64(), WHOLES, HUNDRED, NUMBER),
    "short": (pa.int16(), [0, 3, 1, -3, 100, -9, 32767], CODES, LABEL),
    "long_code": (pa.int64(), WHOLES, CODES, LABEL),
    "real": (pa.float64(), REALS, AMOUNT, NUMBER),
    "wide": (pa.float64(), REALS, WIDE, NUMBER),
    "real_whole": (pa.float64(), REALS, HUNDRED, NUMBER),
    "real_code": (pa.float64(), REALS, {"kind": "categorical", "categories": ["0", "0.5", "inf", "1.0", "3"]}, LABEL),
    "text": (
        pa.string(),
        TEXTS,
        {"kind": "categorical", "categories": ["a", "b'c", "é", "3", "-3", "10", "inf"]},
        LABEL,
    ),
    "words": (pa.string(), TEXTS, {"kind": "categorical", "categories": ["a", "3.0", "A", "a "]}, LABEL),
    "yes": (pa.string(), ["no", "yes", "1", "NA", "", "YES"], {"kind": "boolean", "false": "no", "true": "yes"}, TRUTH),
    "truth": (pa.bool_(), [True, False], {"kind": "boolean", "false": "no", "true": "yes"}, TRUTH),
    "truth_label": (pa.bool_(), [True, False], {"kind": "categorical", "categories": ["True", "x"]}, LABEL),
    "truth_number": (pa.bool_(), [True, False], HUNDRED, NUMBER),
    "day": (pa.date32(), DAYS, YEAR, NUMBER),
    "moment": (pa.timestamp("us"), MOMENTS, YEAR, NUMBER),
    "second": (pa.timestamp("us"), MOMENTS, SECONDS, NUMBER),
    "decimal": (pa.decimal128(12, 2), DECIMALS, AMOUNT, NUMBER),
    "decimal_code": (pa.decimal128(12, 2), DECIMALS, {"kind": "categorical", "categories": ["0", "0.5", "100"]}, LABEL),
}


@st.composite
def nasty(draw: st.DrawFn, leave_out: tuple[str, ...] = ()) -> tuple[pa.Table, Schema]:
    """Some columns, some rows, some rules; half the cells of each pool, so that not every row is left out."""
    names = draw(
        st.lists(st.sampled_from([n for n in COLUMNS if n not in leave_out]), min_size=2, max_size=5, unique=True)
    )
    rows = draw(st.integers(0, 40))
    columns, declared = {}, {}
    for name in names:
        dtype, cells, column, rules = COLUMNS[name]
        some = draw(st.lists(st.sampled_from([None, *cells]), min_size=1, max_size=8))
        cell = st.sampled_from(some)
        if dtype == pa.float64():
            cell = cell | st.floats(-3, 101, width=64)
        columns[name] = pa.array(draw(st.lists(cell, min_size=rows, max_size=rows)), type=dtype)
        declared[name] = column | draw(st.sampled_from(rules))
    empty = draw(st.sampled_from([["", "NA"], ["", "NA", "-9", "0.50"], ["null"], ["-9"]]))
    return pa.table(columns), parse_schema({"columns": declared, "missing_values": empty})


def grids(schema: Schema) -> list[Cells]:
    coarse = Cells(schema, 16)
    return [coarse, FineCells(coarse, 8)]


def some_bins(cells: Cells, seed: int) -> Bins:
    """As an aggregator sends them that nobody trusts: cells in any bin of their column."""
    rng = np.random.default_rng(seed)
    of_cell = np.zeros(cells.size, dtype=np.int64)
    for part in cells.slices.values():
        width = part.stop - part.start
        stretches = np.sort(rng.integers(0, min(width, 6), width))
        of_cell[part] = rng.permutation(stretches) if rng.random() < 0.5 and width < 500 else stretches
    return Bins(cells, of_cell)


def all_pairs(schema: Schema) -> list[Clique]:
    places = range(len(schema.released))
    return [*combinations(places, 2), *((place,) for place in places)]
