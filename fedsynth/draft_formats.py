"""How a column's cells are written: which of the usual ways fits nearly all of them.

A few cells may be no number or time at all (a remark, a typing error); the column is still one, and those cells become
empty by the schema's rule.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

NEARLY_ALL = 0.98  # of the cells must be readable
FEWEST_FOR_BAD = 50  # cells, before any may be unreadable
DATES = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%d.%m.%y", "%Y%m%d")
CLOCKS = {" %H:%M:%S.%f": "second", " %H:%M:%S": "second", " %H:%M": "minute", "T%H:%M:%S.%f": "second",
          "T%H:%M:%S": "second", "T%H:%M:%SZ": "second", "T%H:%M:%S.%fZ": "second", "T%H:%M": "minute"}  # fmt: skip
AFFIX = r"(?P<affix>[€$£¥%]|EUR|USD|GBP|CHF|kr|zł)"
WRITTEN = {  # how it is called in the schema → a whole cell, without what stands before or behind the number
    "1,234.5": re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?|[+-]?\d+\.\d+|[+-]?\d{1,3}"),
    "1.234,5": re.compile(r"[+-]?\d{1,3}(?:\.\d{3})+(?:,\d+)?|[+-]?\d+,\d+|[+-]?\d{1,3}"),
    "1 234,5": re.compile(r"[+-]?\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?:,\d+)?|[+-]?\d+,\d+|[+-]?\d{1,3}"),
    "1,5": re.compile(r"[+-]?\d+(?:,\d+)?"),
}


@dataclass(frozen=True)
class Numbers:
    """Cells read as numbers: NaN for those that are none."""

    values: pd.Series
    texts: pd.Series  # in plain form, of those that are
    options: dict[str, Any]  # for the schema
    bad: int


@dataclass(frozen=True)
class Times:
    values: pd.Series
    options: dict[str, Any]
    bad: int
    remark: str = ""


def as_numbers(values: pd.Series) -> Numbers | None:
    """Plainly written, or with a decimal comma, thousands' marks or a currency; None if these are no numbers."""
    numbers = _plain(values)
    if (bad := _few_bad(numbers)) is not None:
        return Numbers(numbers, values[numbers.notna()], {}, bad)
    bare, options = values, {}
    affixes = values.str.extract(AFFIX, flags=re.IGNORECASE)["affix"].dropna()
    if len(affixes) and affixes.nunique() == 1 and len(affixes) >= NEARLY_ALL * len(values):
        options["affix"] = str(affixes.iloc[0])
        bare = values.str.replace(options["affix"], "", regex=False).str.strip()
        numbers = _plain(bare)
        if (bad := _few_bad(numbers)) is not None:
            return Numbers(numbers, bare[numbers.notna()], options, bad)
    for name, pattern in WRITTEN.items():
        fits = bare.str.fullmatch(pattern)
        if (~fits).sum() <= _allowed(len(values)) and _shows(name, bare[fits]):
            texts = plain_number(bare[fits], name)
            found = _plain(texts).reindex(values.index)
            return Numbers(found, texts, options | {"written": name}, int((~fits).sum()))
    return None


def plain_number(texts: pd.Series, written: str) -> pd.Series:
    """Numbers as programs write them."""
    if written == "1,234.5":
        return texts.str.replace(",", "", regex=False)
    return texts.str.replace(r"[.\s]", "", regex=True).str.replace(",", ".", regex=False)


def as_times(values: pd.Series) -> Times | None:
    """One of the usual ways to write a day, or a day and a time; None if these are no times."""
    length = int(values.str.len().max())
    for day in DATES:
        for clock, precision in ({"": "day"} if length <= 10 else CLOCKS).items():
            found = pd.to_datetime(values, format=day + clock, errors="coerce")
            if (bad := _few_bad(found)) is None or not _plausible(day, found):
                continue
            options = {} if day + clock == "%Y-%m-%d" else {"precision": precision, "format": day + clock}
            return Times(found, options, bad, _ambiguous(day, clock, values))
    return None


def widened(times: pd.Series) -> tuple[dt.datetime, dt.datetime]:
    """The start of the first year and the end of the last; of months, where there is hardly more than a year."""
    first, last = times.min(), times.max()
    if (last - first).days > 2 * 365:
        low, high = dt.datetime(first.year, 1, 1), dt.datetime(last.year, 12, 31, 23, 59, 59)
    else:
        low = dt.datetime(first.year, first.month, 1)
        high = (pd.Timestamp(last.year, last.month, 1) + pd.offsets.MonthEnd()).to_pydatetime()
        high = high.replace(hour=23, minute=59, second=59)
    return low, high


def _ambiguous(day: str, clock: str, values: pd.Series) -> str:
    if day != "%d/%m/%Y" or pd.to_datetime(values, format="%m/%d/%Y" + clock, errors="coerce").isna().any():
        return ""
    return "Is the day first, or the month? Taken for day/month/year; else the format is '%m/%d/%Y'."


def _plausible(day: str, times: pd.Series) -> bool:
    """Eight digits are a date only where all of them are of our times."""
    return day != "%Y%m%d" or bool(times.dropna().dt.year.between(1900, 2100).all())


def _shows(name: str, texts: pd.Series) -> bool:
    """Whether some cell is written in this very way: '123' is a number however it is written."""
    mark = {"1,234.5": r",\d{3}", "1.234,5": r"\.\d{3}", "1 234,5": r"\s\d{3}", "1,5": ","}[name]
    return bool(texts.str.contains(mark).any())


def _plain(texts: pd.Series) -> pd.Series:
    numbers = pd.to_numeric(texts, errors="coerce")
    return pd.Series(numbers.to_numpy(dtype=np.float64, na_value=np.nan), index=texts.index)


def _allowed(cells: int) -> int:
    return int(cells * (1 - NEARLY_ALL)) if cells >= FEWEST_FOR_BAD else 0


def _few_bad(found: pd.Series) -> int | None:
    """How many cells cannot be read; None if they are too many for the column to be of this kind."""
    bad = int(found.isna().sum())
    return bad if bad <= _allowed(len(found)) and bad < len(found) else None
