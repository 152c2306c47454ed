"""Cells of one column to numbers, and every way a cell can be unfit.

CSV gives text and Parquet gives types, and one institution uses the one and its neighbour the other: '3', 3 and 3.0
must be the same cell at both. Labels and times are converted once per distinct cell, so millions of rows are cheap.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype, is_object_dtype

from synth.encoding.scales import SECONDS, Floats, floor_time, scale_of
from synth.schema import Boolean, Continuous, Datetime, DiscreteColumn, Integer

Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int64]
WHOLE_REAL = re.compile(r"-?\d+\.0+")  # a whole number that some export wrote as a real one


@dataclass(frozen=True)
class Flaw:
    """One kind of unfit cell: which rows have it and what to do about it. Never the cell itself."""

    bad: Mask
    what: str
    remedy: str


def read_labels(cells: pd.Series, column: DiscreteColumn, empty_texts: list[str]) -> tuple[Codes, list[Flaw]]:
    """Label codes; an undeclared label becomes `other` where that is declared."""
    cells, empty = _emptied(cells, empty_texts)
    where, distinct = pd.factorize(cells, use_na_sentinel=True)
    code_of = {label: code for code, label in enumerate(column.labels)}
    if isinstance(column, Boolean) and is_bool_dtype(cells.dtype):
        code_of = {"False": 0, "True": 1}
    other = code_of[column.other] if not isinstance(column, Boolean) and column.other is not None else -1
    codes = [_label_code(_text(cell), code_of, other) for cell in distinct]
    values = np.array([*codes, len(column.labels)], dtype=np.int64)[where]  # factorize marks empty cells -1: the last
    undeclared = Flaw(values < 0, "undeclared labels", "correct them, declare them, or declare an 'other' label")
    return values, [*_empty_flaws(empty, column.missing), undeclared]


def read_numbers(cells: pd.Series, column: Integer | Continuous, empty_texts: list[str]) -> tuple[Floats, list[Flaw]]:
    """Numbers at the declared precision; NaN where the cell is empty."""
    cells, empty = _emptied(cells, empty_texts)
    numbers = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    scale = scale_of(column)
    infinite = np.isinf(numbers)
    rounded = scale.round(np.where(infinite, np.nan, numbers))
    bounds = f"between {column.min} and {column.max}"
    flaws = [
        *_empty_flaws(empty, column.missing),
        Flaw(
            np.isnan(numbers) & ~empty,
            "text that is not a number",
            "write numbers with a decimal point, leave the cell empty, or declare the text under missing_values",
        ),
        Flaw(infinite, "infinite numbers", "replace them or leave them empty"),
        Flaw((rounded < scale.lowest) | (rounded > scale.highest), f"numbers not {bounds}", "correct or clip them"),
    ]
    if isinstance(column, Integer):
        fraction = ~np.isnan(rounded) & (numbers != rounded)
        flaws.append(Flaw(fraction, "numbers that are not whole", "round them or declare the column continuous"))
    return rounded, flaws


def read_times(cells: pd.Series, column: Datetime, empty_texts: list[str]) -> tuple[Floats, list[Flaw]]:
    """Seconds since the lowest time, cut to the declared precision; NaN where the cell is empty."""
    cells, empty = _emptied(cells, empty_texts)
    where, distinct = pd.factorize(cells, use_na_sentinel=True)
    moments = pd.to_datetime(
        pd.Series([_moment(cell) for cell in distinct], dtype=object), format=column.format, errors="coerce"
    )
    offsets = (_zoneless(moments) - pd.Timestamp(floor_time(column.min, column))).dt.total_seconds()
    unit = SECONDS[column.precision]
    floored = np.floor(offsets.to_numpy(dtype=np.float64, na_value=np.nan) / unit) * unit
    seconds = np.append(floored, np.nan)[where]
    scale = scale_of(column)
    flaws = [
        *_empty_flaws(empty, column.missing),
        Flaw(
            np.isnan(seconds) & ~empty,
            f"cells that are not times without zone in the format '{column.format}'",
            "correct them or the declared format",
        ),
        Flaw(
            (seconds < 0) | (seconds > scale.highest),
            f"times not between {column.min} and {column.max}",
            "correct them",
        ),
    ]
    return seconds, flaws


def time_texts(seconds: Floats, column: Datetime) -> pd.Series:
    """Times in the declared format; missing where NaN."""
    where, distinct = pd.factorize(seconds, use_na_sentinel=True)
    start = pd.Timestamp(floor_time(column.min, column))
    texts = (start + pd.to_timedelta(distinct, unit="s").as_unit("us")).strftime(column.format)
    return pd.Series(pd.array([*texts, None], dtype="str").take(where))


def _emptied(cells: pd.Series, empty_texts: list[str]) -> tuple[pd.Series, Mask]:
    """The cells with every spelling of 'empty' made NA, and where they are."""
    cells = cells.reset_index(drop=True)
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.astype(object)
    if is_bool_dtype(cells.dtype) or isinstance(cells.dtype, pd.DatetimeTZDtype) or cells.dtype.kind == "M":
        return cells, cells.isna().to_numpy(dtype=bool)
    as_numbers = pd.to_numeric(pd.Series(empty_texts, dtype=object), errors="coerce").dropna().tolist()
    spellings: list[Any] = as_numbers if is_numeric_dtype(cells.dtype) else list(empty_texts)
    if is_object_dtype(cells.dtype):
        spellings += as_numbers
    empty = (cells.isna() | cells.isin(spellings)).to_numpy(dtype=bool)
    return cells.mask(empty), empty


def _empty_flaws(empty: Mask, allowed: bool) -> list[Flaw]:
    return [] if allowed else [Flaw(empty, "empty cells", "fill them or declare 'missing: true'")]


def _text(cell: Any) -> str:
    """How a typed cell would be written in a text file: whole reals without a point."""
    if isinstance(cell, float | np.floating) and float(cell).is_integer():
        return str(int(cell))
    return str(cell)


def _label_code(text: str, code_of: dict[str, int], other: int) -> int:
    if text not in code_of and WHOLE_REAL.fullmatch(text):
        text = text.split(".")[0]
    return code_of.get(text, other)


def _moment(cell: Any) -> Any:
    """What pandas parses: a time as it is, anything else as text; a time with a zone is no time here."""
    if isinstance(cell, dt.datetime):
        return cell if cell.tzinfo is None else None
    return cell if isinstance(cell, dt.date) else _text(cell)


def _zoneless(moments: pd.Series) -> pd.Series:
    """Texts that carry a zone are not accepted, so such a column is unreadable as a whole."""
    if isinstance(moments.dtype, pd.DatetimeTZDtype):
        return pd.Series([pd.NaT] * len(moments), dtype="datetime64[us]")
    return moments
