"""Cells of one column in a plain form, each by itself: what one row holds never decides how another row is read.

Pandas reads columns, not cells: one empty cell makes whole numbers real, one text among numbers makes everything an
object, and `True`, `1` and `1.0` are one object to it. Beside a release that would be a hole: a single row would move
the others. So objects become text here one by one, and a column that has a type of its own keeps it.
"""

from __future__ import annotations

import datetime as dt
import decimal
import string
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype, is_object_dtype

Mask = npt.NDArray[np.bool_]
UNWRITABLE = "\N{REPLACEMENT CHARACTER}"  # fits no column
BLANKS = string.whitespace  # around a text that mean nothing: columns of fixed width, and typing
Objects = npt.NDArray[np.object_]
LONGEST_BITS = 1 << 12  # a whole number beyond this is beyond every float; Python would not even write it out


def emptied(
    cells: pd.Series, empty_texts: Sequence[str], truth: tuple[str, str], blanks: str = BLANKS
) -> tuple[pd.Series, Mask]:
    """The cells, texts where they were objects, with every spelling of 'empty' made NA; and where those are.

    `truth` is how an untyped 'no' and 'yes' are written in this column, `blanks` what may stand around 'empty'.
    """
    cells = as_plain(cells.reset_index(drop=True))
    if is_object_dtype(cells.dtype):
        cells = pd.Series(_texts(cells.to_numpy(dtype=object), empty_texts, truth), dtype="str")
    if is_bool_dtype(cells.dtype) or is_time(cells):
        return cells, cells.isna().to_numpy(dtype=bool)
    spellings: list[Any] = as_numbers(empty_texts) if is_numeric_dtype(cells.dtype) else list(empty_texts)
    empty = (cells.isna() | cells.isin(spellings)).to_numpy(dtype=bool)
    if not is_numeric_dtype(cells.dtype):
        empty = empty | cells.str.strip(blanks).isin(spellings).to_numpy(dtype=bool)
    return cells.mask(empty), empty


def blanks_matter(texts: Iterable[str]) -> bool:
    """Whether one of these texts begins or ends with blanks, so that they must be compared as they are."""
    return any(text != text.strip(BLANKS) for text in texts)


def as_plain(cells: pd.Series) -> pd.Series:
    """Columns of a type that says nothing about single cells (categories, durations) as the objects they hold."""
    if isinstance(cells.dtype, pd.CategoricalDtype) or cells.dtype.kind == "m":
        return cells.astype(object)
    return cells


def is_time(cells: pd.Series) -> bool:
    return isinstance(cells.dtype, pd.DatetimeTZDtype) or cells.dtype.kind == "M"


def is_null(cell: Any) -> bool:
    """Never raises, unlike `pd.isna` on lists and on signalling decimals."""
    if cell is None or cell is pd.NA or cell is pd.NaT:
        return True
    if isinstance(cell, decimal.Decimal):
        return cell.is_nan()
    return isinstance(cell, float | np.floating) and bool(np.isnan(cell))


def text_of(cell: Any) -> str:
    """How a typed cell would be written in a text file: whole reals without a point."""
    if isinstance(cell, bytes):
        return cell.decode("utf-8", errors="replace")
    if isinstance(cell, decimal.Decimal):
        cell = float(cell)
    if isinstance(cell, int) and cell.bit_length() > LONGEST_BITS:
        cell = np.inf if cell > 0 else -np.inf
    if isinstance(cell, float | np.floating) and float(cell).is_integer():
        return str(int(cell))
    try:
        return _storable(str(cell))
    except (ValueError, RecursionError):  # lists within lists, or in them a number too long to write
        return UNWRITABLE


def _storable(text: str) -> str:
    """Half a character (a lone surrogate, from JSON in a database) would keep the whole column from being stored."""
    return text if text.isascii() else text.encode("utf-8", errors="replace").decode("utf-8")


def plain_time(cell: Any) -> np.datetime64 | None:
    """A time or day object without zone, to the microsecond; None for every other cell."""
    if is_null(cell) or not isinstance(cell, dt.date) or getattr(cell, "tzinfo", None) is not None:
        return None
    moment: np.datetime64 = cell.to_datetime64() if isinstance(cell, pd.Timestamp) else np.datetime64(cell, "us")
    found: np.datetime64 = moment.astype("datetime64[us]")
    return found


def _texts(cells: Objects, empty_texts: Sequence[str], truth: tuple[str, str]) -> list[str | None]:
    as_text, as_number = set(empty_texts), set(as_numbers(empty_texts))

    def text(cell: Any) -> str | None:
        if isinstance(cell, str):
            return None if cell in as_text else _storable(cell)
        if isinstance(cell, bool | np.bool_):
            return truth[int(cell)]
        if is_null(cell):
            return None
        cell = float(cell) if isinstance(cell, decimal.Decimal) else cell
        if isinstance(cell, int | float | np.number) and cell in as_number:
            return None
        return text_of(cell)

    return [text(cell) for cell in cells]


def as_numbers(empty_texts: Sequence[str]) -> list[float]:
    found: list[float] = pd.to_numeric(pd.Series(list(empty_texts), dtype=object), errors="coerce").dropna().tolist()
    return found
