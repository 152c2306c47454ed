"""Dates keep their week: 44 % of payments fell on days that have none."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from synth.encoding.cells import Cells
from synth.encoding.fine_cells import FineCells
from synth.encoding.records import Codec
from synth.encoding.weekdays import WEEK
from synth.plan import parse_schema

WORKING = 5


def grid(minimum: str, maximum: str, precision: str = "day", groups: int = 16) -> FineCells:
    column = {"kind": "datetime", "min": minimum, "max": maximum, "precision": precision, "format": "%Y-%m-%dT%H"}
    return FineCells(Cells(parse_schema({"columns": {"day": column}}), 32), groups)


@given(st.datetimes(dt.datetime(1850, 1, 1), dt.datetime(2100, 1, 1)), st.sampled_from(["day", "hour"]))
def test_every_cell_has_the_weekday_of_its_times(start: dt.datetime, precision: str) -> None:
    start = start.replace(hour=0, minute=0, second=0, microsecond=0)  # days are cut from the lowest time on
    found = grid(start.isoformat(), (start + dt.timedelta(days=300)).isoformat(), precision)
    of = found.weeks["day"]
    seconds = found.edges("day")[:-1] + found.scales["day"].step / 2
    assert [(start + dt.timedelta(seconds=float(at))).weekday() for at in seconds] == of.tolist()


def test_few_weeks_and_cells_of_several_days_have_none() -> None:
    assert grid("2020-01-01", "2020-01-21").weeks == {}
    assert grid("1000-01-01", "2999-01-01").weeks == {}
    assert grid("2020-01-01T07:00", "2023-12-31", "hour").weeks == {}


def test_working_days_come_out_as_working_days() -> None:
    """20,000 rows on working days, noise of 60 rows in each count: no day can be seen, the week can. The chance that a
    weekend day passes for significant (3 standard deviations of its noise) is 1 in 700; the seed is fixed."""
    rng, sigma = np.random.default_rng(0), 60.0
    cells = grid("2020-01-01", "2023-12-31")
    days = [dt.date(2020, 1, 1) + dt.timedelta(days=n) for n in range(1400)]
    chosen = rng.choice([f"{day}T00" for day in days if day.weekday() < WORKING], 20_000)
    exact = cells.released(cells.count(Codec(cells.schema).encode(pd.DataFrame({"day": chosen}))))
    noisy = exact + np.rint(rng.normal(0, sigma, len(exact)))
    found = cells.probabilities(cells.consistent(noisy), sigma)["day"]
    share = np.bincount(cells.weeks["day"], found, minlength=WEEK)
    assert share[WORKING:].sum() < 0.001
    assert np.abs(share[:WORKING] - 1 / WORKING).max() < 0.02


def test_days_without_a_week_stay_as_they_are() -> None:
    """Evenly over all days: what noise shows of a week is no week (3 standard deviations of seven counts; the chance
    that one is beyond is 1 in 50, the seed is fixed)."""
    rng = np.random.default_rng(1)
    cells = grid("2020-01-01", "2023-12-31")
    counts = cells.released(rng.multinomial(20_000, np.full(cells.size, 1 / cells.size)))
    noisy = counts + np.rint(rng.normal(0, 60.0, len(counts)))
    found = cells.probabilities(cells.consistent(noisy), 60.0)["day"]
    assert np.abs(np.bincount(cells.weeks["day"], found) - 1 / WEEK).max() < 0.01
