"""The week in a column of dates: nothing is paid on a Sunday, and no noise that hides single days hides that.

A histogram of seven counts more, over the same cells, costs as much as any other. It is made one with the counts of the
days (as groups are, see `fine_cells`), and a distribution over days is then brought to its shares where they differ
from what the days alone say by more than noise.
"""

from __future__ import annotations

import datetime as dt

import numpy as np

from synth.encoding.cuts import DAY, Ints
from synth.encoding.scales import Floats, Scale, floor_time
from synth.schema import Datetime

WEEK = 7
FEWEST_WEEKS = 4  # of a column, below which days speak for themselves
SIGNIFICANT = 3.0  # standard deviations of the noise of one count


def weekdays(column: Datetime, scale: Scale, starts: Ints) -> Ints | None:
    """The weekday (0 is Monday) of every cell of a column of dates; None where a cell is more than a day, or weeks are
    few."""
    origin = (floor_time(column.min, column) - dt.datetime(1970, 1, 1)).total_seconds()
    first = (origin + starts[:-1] * scale.step) // DAY
    last = (origin + (starts[1:] - 1) * scale.step) // DAY
    if (first != last).any() or len(np.unique(first)) < FEWEST_WEEKS * WEEK:
        return None
    found: Ints = ((first + 3) % WEEK).astype(np.int64)  # 1970 began on a Thursday
    return found


def joined(cells: Floats, own: Floats, of: Ints) -> Floats:
    """Counts of cells that make the best of their own noise and of the seven counts' (Hay et al., VLDB 2010)."""
    sums, width = np.bincount(of, weights=cells, minlength=WEEK), np.bincount(of, minlength=WEEK)
    found: Floats = cells + ((own - sums) / (width + 1))[of]
    return found


def with_week(found: Floats, counts: Floats, of: Ints, sigma: float, rows: float) -> Floats:
    """A distribution over cells with the shares of the weekdays that these counts have, if noise does not explain why
    it has others. A weekday without a significant count is empty."""
    seen = np.bincount(of, weights=counts, minlength=WEEK)
    seen = seen + (rows - seen.sum()) / WEEK  # how many rows there are is known better from all columns
    told = np.bincount(of, weights=found, minlength=WEEK)
    if np.abs(seen - told * rows).max() <= SIGNIFICANT * sigma:
        return found
    kept = np.where(seen > SIGNIFICANT * sigma, seen, 0.0)
    if not (kept * told).any():
        return found
    shares = np.divide(kept, told, out=np.zeros(WEEK), where=told > 0)
    weighed = found * shares[of]
    whole: Floats = weighed / weighed.sum()
    return whole
