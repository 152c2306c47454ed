"""A forecast is what the noise then does: checked against noise drawn by the parties' own code."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from rich.console import Console

from fedsynth.commands.forecasting import show_forecast
from synth.counting.schedule import candidate_pairs
from synth.encoding.records import Codec
from synth.forecast import Forecast, forecast
from synth.grid import grid_of
from synth.plan import Plan
from synth.privacy.noise import seeded_source
from synth.statistics.histograms import StatisticsInquiry
from tests.contract.test_synthesizers import SMALLEST
from tests.small import plan_of, table


def of(plan: Plan) -> Forecast:
    found = forecast(plan)
    assert found is not None
    return found


@pytest.mark.parametrize("family", SMALLEST)
def test_every_family_has_one_and_none_without_privacy(family: str) -> None:
    found = of(plan_of(SMALLEST[family]))
    assert set(found.columns) == set(plan_of(SMALLEST[family]).table.released)
    told = [found.pairs is not None, found.step_noise is not None]
    assert sum(told) == (plan_of(SMALLEST[family]).family.answers != "votes")  # votes have no noise to foretell
    assert forecast(plan_of(SMALLEST[family], privacy="none")) is None


def test_a_column_s_noise_is_what_the_parties_add() -> None:
    """Counts of no rows are noise alone. A mean of |noise| over about 100 draws of 3 parties is within 25 % of the
    forecast but for a chance below 1 in 1,000; the seed is fixed."""
    plan = plan_of(SMALLEST["marginals"])
    told, inquiry = of(plan), StatisticsInquiry(plan)
    nobody = Codec(plan.table).encode(table(5)).take(np.arange(0))
    ask = inquiry.ask(0)
    assert ask is not None
    answers = {
        party.name: inquiry.answer(ask, party.name, nobody, {}, seeded_source(number))[0]
        for number, party in enumerate(plan.parties)
    }
    counts = sum(answer.arrays["counts"] for answer in answers.values())
    assert isinstance(counts, np.ndarray)
    found = float(np.abs(counts).mean()) * np.sqrt(np.pi / 2) / plan.declared_rows
    assert found == pytest.approx(told.share_error, rel=0.25)


def test_more_rows_and_more_budget_leave_less_noise() -> None:
    few = plan_of(SMALLEST["marginals"])
    many = few.model_copy(update={"parties": tuple(p.model_copy(update={"rows": 100 * p.rows}) for p in few.parties)})
    assert of(many).share_error < of(few).share_error
    assert of(many).typical < of(few).typical


def test_hopeless_plans_are_said_to_be_hopeless() -> None:
    plan = plan_of(SMALLEST["marginals"], privacy={"epsilon": 0.05, "delta": 1e-5})
    found, console = of(plan), Console(record=True, width=80)
    show_forecast(console, plan)
    assert found.verdict == "noise"
    assert "MOST OF THIS TABLE IS NOISE" in console.export_text()
    assert all(len(line) <= 80 for line in console.export_text().splitlines())


def test_grid_and_pairs_follow_the_declared_rows_not_the_drawn_ones() -> None:
    """They followed `output.rows`: a million synthetic rows asked for made a grid for a million real ones."""
    plan = plan_of(SMALLEST["marginals"])
    more = plan.model_copy(update={"output": plan.output.model_copy(update={"rows": 10**6})})
    names = list(plan.table.released)
    assert grid_of(more).released_size == grid_of(plan).released_size
    assert candidate_pairs(more, names, 600, 0.4) == candidate_pairs(plan, names, 600, 0.4)
    assert set(of(more).pairs or {}) == set(combinations(names, 2))
