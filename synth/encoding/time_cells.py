"""Cells that are times, each by itself, to seconds since the column's lowest time, and back to text.

Pandas gives a whole column one unit of time, the finest that some cell needs: a single time in nanoseconds would push
all years before 1678 out of range. So units are taken apart before cells are put together.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api.types import is_object_dtype

from synth.encoding.plain_cells import Objects, as_plain, is_time, plain_time, text_of
from synth.encoding.scales import SECONDS, Floats, floor_time
from synth.schema import Datetime

Times = npt.NDArray[np.datetime64]
IN_A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
TODAY = ("now", "today")  # which pandas takes for times, whatever the format: a row must not mean what day it is


def seconds_of(cells: pd.Series, texts: pd.Series, column: Datetime) -> Floats:
    """Seconds since the lowest time, cut to the declared precision; NaN for what is no time without zone.

    `cells` are as the source holds them; `texts` the same in plain form, empty cells NA.
    """
    cells = as_plain(cells)
    if is_time(cells):
        if isinstance(cells.dtype, pd.DatetimeTZDtype):
            return np.full(len(cells), np.nan)
        return _since_lowest(cells.to_numpy(), column)
    seconds = _read_texts(texts, column)
    if is_object_dtype(cells.dtype):  # time and day objects need no format
        moments = np.array([plain_time(cell) for cell in cells], dtype="datetime64[us]")
        seconds = np.where(np.isnat(moments), seconds, _since_lowest(moments, column))
    return seconds


def time_texts(seconds: Floats, column: Datetime) -> pd.Series:
    """Times in the declared format; missing where NaN."""
    where, distinct = pd.factorize(seconds, use_na_sentinel=True)
    start = pd.Timestamp(floor_time(column.min, column))
    texts = (start + pd.to_timedelta(distinct, unit="s").as_unit("us")).strftime(column.format)
    return pd.Series(pd.array([*texts, None], dtype="str").take(where))


def _read_texts(texts: pd.Series, column: Datetime) -> Floats:
    """Every distinct text once, so that millions of rows are cheap."""
    where, distinct = pd.factorize(texts, use_na_sentinel=True)
    written = map(text_of, distinct)
    cells = np.array([None if text.strip().lower() in TODAY else text for text in written], dtype=object)
    moments = _parsed(cells, column)
    seconds = _since_lowest(moments, column)
    if np.datetime_data(moments.dtype)[0] == "ns":  # somebody wrote nanoseconds: the others again, without them
        for place in np.flatnonzero(np.isnan(seconds)):
            seconds[place] = _since_lowest(_parsed(cells[place : place + 1], column), column)[0]
    return np.append(seconds, np.nan)[where]


def _parsed(cells: Objects, column: Datetime) -> Times:
    found: Times = pd.to_datetime(pd.Series(cells, dtype=object), format=column.format, errors="coerce").to_numpy()
    return found


def _since_lowest(moments: Times, column: Datetime) -> Floats:
    """In whole numbers until the end, so that no unit of time and no far year is rounded."""
    resolution, unit = np.datetime_data(moments.dtype)[0], SECONDS[column.precision]
    lowest = int(np.datetime64(floor_time(column.min, column), "s").astype(np.int64))
    whole = moments.astype(np.int64) // (unit * IN_A_SECOND[resolution])
    return np.where(np.isnat(moments), np.nan, whole.astype(np.float64) * unit - lowest)
