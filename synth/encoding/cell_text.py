"""Cells of one column to numbers, and every way a cell can be unfit.

CSV gives text and Parquet gives types, and one institution uses the one and its neighbour the other: '3', 3 and 3.0
must be the same cell at both. Every cell is read by itself: see `plain_cells` for what pandas would do otherwise.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from synth.encoding.fallbacks import Flaw, Kind
from synth.encoding.plain_cells import BLANKS, Mask, blanks_matter, emptied, text_of
from synth.encoding.scales import Floats, Scale, scale_of
from synth.encoding.time_cells import seconds_of
from synth.schema import Boolean, Continuous, Datetime, DiscreteColumn, Integer, NumericColumn

Codes = npt.NDArray[np.int64]
WHOLE_REAL = re.compile(r"-?\d+\.0+")  # a whole number that some export wrote as a real one
A_REAL = "0.5"  # read along with every column, so that pandas reads all of them as real numbers


def read_labels(cells: pd.Series, column: DiscreteColumn, empty_texts: list[str]) -> tuple[Codes, list[Flaw]]:
    """Label codes, -1 for an undeclared one; such a label becomes `other` where that is declared."""
    truth = (column.false, column.true) if isinstance(column, Boolean) else ("False", "True")
    blanks = "" if blanks_matter(column.labels) else BLANKS
    cells, empty = emptied(cells, empty_texts, truth, blanks)
    where, distinct = pd.factorize(cells, use_na_sentinel=True)
    code_of = {label: code for code, label in enumerate(column.labels)}
    if isinstance(column, Boolean) and is_bool_dtype(cells.dtype):
        code_of = {"False": 0, "True": 1}
    other = code_of[column.other] if not isinstance(column, Boolean) and column.other is not None else -1
    codes = [_label_code(text_of(cell).strip(blanks), code_of, other) for cell in distinct]
    values = np.array([*codes, len(column.labels)], dtype=np.int64)[where]  # factorize marks empty cells -1: the last
    remedy = "correct them, declare them, or declare an 'other' label"
    undeclared = Flaw(values < 0, Kind.UNDECLARED, "undeclared labels", remedy)
    return values, [*_empty_flaws(empty, column.missing), undeclared]


def read_numbers(cells: pd.Series, column: Integer | Continuous, empty_texts: list[str]) -> tuple[Floats, list[Flaw]]:
    """Numbers at the declared precision; NaN where the cell is empty."""
    cells, empty = emptied(cells, empty_texts, ("0", "1"))
    numbers = _numbers(_plainly_written(cells, column))
    scale = scale_of(column)
    rounded, infinite = scale.round(numbers), np.isinf(numbers)
    flaws = [
        *_empty_flaws(empty, column.missing),
        Flaw(
            np.isnan(numbers) & ~empty,
            Kind.UNREADABLE,
            "cells that are not numbers",
            "write numbers with a decimal point, leave the cell empty, or declare the text under missing_values",
        ),
        Flaw(infinite, Kind.INFINITE, "infinite numbers", "replace them or leave them empty"),
        *_bound_flaws(rounded, ~infinite, scale, column, "numbers"),
    ]
    if isinstance(column, Integer):
        fraction = ~np.isnan(numbers) & (numbers != rounded)
        remedy = "round them or declare the column continuous"
        flaws.append(Flaw(fraction, Kind.FRACTION, "numbers that are not whole", remedy))
    return rounded, flaws


def read_times(cells: pd.Series, column: Datetime, empty_texts: list[str]) -> tuple[Floats, list[Flaw]]:
    """Seconds since the lowest time, cut to the declared precision; NaN where the cell is empty."""
    texts, empty = emptied(cells, empty_texts, ("False", "True"))
    seconds = np.where(empty, np.nan, seconds_of(cells.reset_index(drop=True), texts, column))
    flaws = [
        *_empty_flaws(empty, column.missing),
        Flaw(
            np.isnan(seconds) & ~empty,
            Kind.UNREADABLE,
            f"cells that are not times without zone in the format '{column.format}'",
            "correct them or the declared format",
        ),
        *_bound_flaws(seconds, ~np.isnan(seconds), scale_of(column), column, "times"),
    ]
    return seconds, flaws


def _plainly_written(cells: pd.Series, column: Integer | Continuous) -> pd.Series:
    """Texts without a currency and thousands' marks, with a decimal point; each cell by itself."""
    if (column.written is None and column.affix is None) or is_numeric_dtype(cells.dtype):
        return cells
    texts = cells.astype("str")
    if column.affix is not None:
        texts = texts.str.removeprefix(column.affix).str.removesuffix(column.affix).str.strip()
    if column.written == "1,234.5":
        texts = texts.str.replace(",", "", regex=False)
    elif column.written is not None:
        texts = texts.str.replace(r"[.\s]", "", regex=True).str.replace(",", ".", regex=False)
    return texts


def _numbers(cells: pd.Series) -> Floats:
    if is_numeric_dtype(cells.dtype):  # truth values too
        return cells.to_numpy(dtype=np.float64, na_value=np.nan)
    texts = np.append(cells.to_numpy(dtype=object, na_value=np.nan), A_REAL)
    numbers: Floats = np.asarray(pd.to_numeric(texts, errors="coerce"), dtype=np.float64)[:-1]
    return numbers


def _bound_flaws(values: Floats, told: Mask, scale: Scale, column: NumericColumn, noun: str) -> list[Flaw]:
    return [
        Flaw((values < scale.lowest) & told, Kind.BELOW, f"{noun} below {column.min}", "correct them or the bound"),
        Flaw((values > scale.highest) & told, Kind.ABOVE, f"{noun} above {column.max}", "correct them or the bound"),
    ]


def _empty_flaws(empty: Mask, allowed: bool) -> list[Flaw]:
    return [] if allowed else [Flaw(empty, Kind.EMPTY, "empty cells", "fill them or declare 'missing: true'")]


def _label_code(text: str, code_of: dict[str, int], other: int) -> int:
    if text not in code_of and WHOLE_REAL.fullmatch(text):
        text = text.split(".")[0]
    return code_of.get(text, other)
