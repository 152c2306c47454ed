"""What noise will do to a table, from plan and schema alone, before anything is spent.

A count has the same noise whatever the rows are, so how much of a column or of a pair of columns will be noise is known
beforehand: cells × the noise of one count, beside the rows. It says nothing about how good a model will be, only about
what no model can see. It is checked against runs by `benchmarks/forecast.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations
from math import log, pi, sqrt
from statistics import median
from typing import Literal

from synth.encoding.denoising import HEAP
from synth.grid import grid_of
from synth.plan import Plan
from synth.privacy.events import Event
from synth.privacy.shares import step_noises, summed_variances
from synth.programme import fitted_on

REFERENCE = 10  # bins a number is divided into in a pair's table, to compare plans by
COARSE, NOISE = 0.15, 0.5  # share of a pair's table that is noise, from which on details, or most of it, are lost

Verdict = Literal["clear", "coarse", "noise"]


@dataclass(frozen=True)
class Forecast:
    """Shares are of the declared rows. None: the plan's family counts no pairs."""

    rows: int
    epsilon: float
    share_error: float  # standard deviation of the share of one value
    columns: dict[str, float]  # part of each column's histogram that is noise (total variation)
    heaps: dict[str, float]  # of a column of numbers: the least share of a single value that can be told from noise
    pair_share_error: float | None = None
    pairs: dict[tuple[str, str], float] | None = None  # part of each pair's table that is noise
    step_noise: float | None = None  # of a network: all parties' noise in a step, beside what its rows can do

    @property
    def typical(self) -> float:
        """Of the columns together, or of the pairs where they are counted."""
        return median((self.pairs or self.columns).values())

    @property
    def verdict(self) -> Verdict:
        return "clear" if self.typical < COARSE else "coarse" if self.typical < NOISE else "noise"

    @property
    def remedy(self) -> float:
        """So many times as much of ε, or of the rows, would make it clear; 1 where it is."""
        return max(self.typical / COARSE, 1.0)

    @property
    def warning(self) -> str | None:
        """What will be lost and what would help; None where there is nothing to warn of."""
        if self.verdict == "clear":
            return None
        lost = "MOST OF THIS TABLE IS NOISE." if self.verdict == "noise" else "Details of this table are lost in noise."
        return (
            f"{lost} What would help: ε = {self.epsilon * self.remedy:.2g}, or {self.remedy:.2g} times the rows, or "
            "fewer columns, fewer labels, narrower bounds."
        )


def forecast(plan: Plan) -> Forecast | None:
    """None without privacy: then nothing is noise."""
    if plan.privacy == "none":
        return None
    first, training = fitted_on(plan)
    party = plan.parties[0].name  # every party's events are the same
    sigma, rows = _sigma(plan, first.whole_cost(party)), plan.declared_rows
    columns = {column: _noise(cells, sigma, rows) for column, cells in _cells(plan).items()}
    found = Forecast(rows, plan.privacy.epsilon, sigma / rows, columns, _heaps(plan, sigma / rows))
    asked = training.whole_cost(party)
    if plan.family.answers == "counts":
        return _with_pairs(found, plan, _sigma(plan, asked))
    noises = step_noises(asked, rows, len(plan.parties))
    return replace(found, step_noise=max(noises) if noises else None)


def _with_pairs(found: Forecast, plan: Plan, sigma: float) -> Forecast:
    cells = {
        name: min(count, REFERENCE) if name in plan.modelled.numeric else count for name, count in _cells(plan).items()
    }
    pairs = {(a, b): _noise(cells[a] * cells[b], sigma, found.rows) for a, b in combinations(cells, 2)}
    return replace(found, pair_share_error=sigma / found.rows, pairs=pairs)


def _sigma(plan: Plan, events: Iterable[Event]) -> float:
    """Of a count that is released once by each of the events, and then averaged."""
    precision = sum(1 / variance for variance in summed_variances(plan, events, len(plan.parties)))
    return precision**-0.5 if precision else 0.0


def _noise(cells: int, sigma: float, rows: int) -> float:
    """Half the sum of what noise adds to or takes from so many cells (σ √(2 / π) each), beside the rows."""
    return min(cells * sigma / sqrt(2 * pi) / rows, 1.0)


def _cells(plan: Plan) -> dict[str, int]:
    """Counts that a column's histogram is made of: labels, or groups of values."""
    grid = grid_of(plan)
    return {
        name: int(grid.groups[name][-1]) + 1 if name in grid.groups else part.stop - part.start
        for name, part in grid.slices.items()
    }


def _heaps(plan: Plan, share_error: float) -> dict[str, float]:
    """A value stands out if it is beyond the largest noise of as many cells as its column has."""
    grid = grid_of(plan)
    return {
        name: min((sqrt(2 * log(part.stop - part.start)) + HEAP) * share_error, 1.0)
        for name, part in grid.slices.items()
        if name in grid.groups
    }
