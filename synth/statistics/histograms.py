"""The first question of every run: one noisy histogram per column, from which everything else is fitted.

Published protocols send category lists, mixture parameters and conditional vectors, each exact and each a leak. Here
every party counts its rows over the *declared* cells of every column, and over groups of them, adds integer noise, and
only the sum is opened.
Mixtures, condition frequencies and quantiles are then functions of that one release: post-processing, free of charge.
With privacy "none" the same counts are released exactly, and the certificate says that nothing is promised.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from synth.budget import statistics_event
from synth.encoding.cells import Cells
from synth.encoding.fine_cells import FineCells
from synth.encoding.mixtures import Mixture
from synth.encoding.rows import Rows
from synth.errors import ProtocolError
from synth.grid import grid_of
from synth.interface import Answer, Array, Arrays, Ask, Inquiry, Sum
from synth.messages.asked import exactly, whole_numbers
from synth.plan import Plan
from synth.privacy.events import CountNoise, Event, Unaccounted
from synth.privacy.noise import NoiseSource
from synth.privacy.shares import owned_variance, share_of, summed_variance

LAYOUT = 2  # of the cells: models saved before there were fine ones do not say
SAME_ROWS = 1e-4  # relative; the summed weights are rounded a little


@dataclass(frozen=True)
class Statistics:
    """What the consortium knows before training."""

    cells: Cells
    counts: Array  # (cells.size,) integers; negative ones are noise
    variance: float  # of the noise in one count of the sum; 0 without privacy
    covered: float = 1.0  # share of the declared rows that is in the counts; less if a party was lost
    by_party: dict[str, Array] = field(default_factory=dict)  # only where each party's counts are private alone
    mixtures: dict[str, Mixture] = field(default_factory=dict)  # only where the parties averaged mixtures
    fine: tuple[Cells, Array] | None = None  # finer cells and their counts, where they were released

    @property
    def finest(self) -> tuple[Cells, Array]:
        """The finest cells that were counted, and their counts."""
        return self.fine or (self.cells, self.counts)

    @classmethod
    def released(cls, grid: FineCells, counts: Array, variance: float, covered: float) -> Statistics:
        """From consistent counts of the fine cells."""
        coarse = grid.to_coarse(counts, variance**0.5)
        return cls(grid.coarse, coarse, variance, covered, fine=(grid, counts))

    @classmethod
    def seen(cls, plan: Plan, rows: Rows, covered: float) -> Statistics:
        """Of rows that are nobody's: without noise."""
        grid = grid_of(plan)
        return cls.released(grid, rows.histograms(grid), 0.0, covered)

    def to_arrays(self) -> Arrays:
        arrays = {"counts": self.counts, "variance": np.array(self.variance), "covered": np.array(self.covered)}
        arrays |= {} if self.cells.old else {"layout": np.array(LAYOUT)}
        arrays |= {"fine": self.fine[1]} if self.fine else {}
        arrays |= {f"party/{name}": counts for name, counts in self.by_party.items()}
        return arrays | {f"mixture/{k}": np.stack([m.weights, m.means, m.stds]) for k, m in self.mixtures.items()}

    @classmethod
    def from_arrays(cls, plan: Plan, arrays: Arrays) -> Statistics:
        parties = {k.removeprefix("party/"): v for k, v in arrays.items() if k.startswith("party/")}
        mixtures = {k.removeprefix("mixture/"): Mixture(*v) for k, v in arrays.items() if k.startswith("mixture/")}
        covered, variance = float(arrays.get("covered", np.array(1.0))), float(arrays["variance"])
        grid = grid_of(plan)
        cells = grid.coarse if "layout" in arrays else Cells(plan.modelled, plan.statistics.bins, old=True)
        fine = (grid, arrays["fine"]) if "fine" in arrays else None
        return cls(cells, arrays["counts"], variance, covered, parties, mixtures, fine)

    def over_the_same_rows(
        self, plan: Plan, total: Sum, counts: Array, event: CountNoise | None
    ) -> tuple[Array, float]:
        """Later counts as if they were over the rows that these are over, and the variance of their noise.

        A party that is lost in between takes its rows out of the one and not of the other; counts of half the rows
        would contradict the histograms. Everybody's share of the rows is public."""
        variance = summed_variance(plan, event, len(total.parties)) if event else 0.0
        scale = self.covered / total.weight
        if abs(scale - 1) < SAME_ROWS:
            return counts, variance
        return np.rint(counts * scale).astype(np.int64), variance * scale**2


class StatisticsInquiry(Inquiry):
    """One ask: count every column. Gathered instead of summed only where each party's counts are private alone."""

    phase = "statistics"

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.grid = grid_of(plan)
        self.cells = self.grid.coarse
        self.event = statistics_event(plan, self.cells.queries)
        self.statistics: Statistics | None = None

    def ask(self, number: int) -> Ask | None:
        if number > 0:
            return None
        return Ask(options={"phase": self.phase}, combine="gather" if self.plan.family.gathers else "sum")

    def absorb(self, total: Sum) -> None:
        variance = owned_variance(self.plan, self.event, len(total.parties)) if self.event else 0.0
        alone = (variance / len(total.parties)) ** 0.5
        by_party = {party: self._checked(answer) for party, answer in total.by_party.items()}
        coarse = {party: self.grid.to_coarse(counts, alone) for party, counts in by_party.items()}
        found = Statistics.released(self.grid, self._checked(total), variance, total.weight)
        self.statistics = replace(found, by_party=coarse)

    def result(self) -> Statistics:
        if self.statistics is None:
            raise ProtocolError("the statistics were used before they were asked for")
        return self.statistics

    def cost(self, ask: Ask, party: str) -> list[Event]:
        whole_numbers(ask, self.phase)
        exactly(ask.arrays, {})
        return self.whole_cost(party)

    def planned_costs(self, party: str) -> list[list[Event]]:
        return [[self.event or Unaccounted("exact counts of every column")]]

    def state(self) -> Arrays:
        return {} if self.statistics is None else self.statistics.to_arrays()

    def restore(self, state: Arrays) -> None:
        self.statistics = Statistics.from_arrays(self.plan, state) if "counts" in state else None

    def answer(self, ask: Ask, party: str, data: Rows, local: Arrays, noise: NoiseSource) -> tuple[Answer, Arrays]:
        counts = self.grid.released(data.histograms(self.grid))
        if self.event is not None:
            by_rows = self.plan.partition == "rows"
            level = share_of(self.plan, self.event) if by_rows else self.event.variance
            drawn = noise.child("counts").skellam(level, len(counts))
            counts = np.minimum(counts, self.plan.largest_count)
            counts = counts + (drawn if by_rows else drawn * self._noised_by(party))
        return Answer({"counts": counts}, weight=self.plan.share(party)), local

    def _noised_by(self, party: str) -> Array:
        """Which counts of a release by columns this party adds noise to: all but those of another's columns, which are
        zeros here and get the other's noise. What nobody is known to hold gets noise, too."""
        foreign = {name for other in self.plan.holders if other != party for name in self.plan.columns_of(other)}
        noised = np.zeros(self.grid.size, dtype=np.int64)
        for name, part in self.grid.slices.items():
            noised[part] = name not in foreign
        return self.grid.released(noised) > 0

    def _checked(self, found: Answer | Sum) -> Array:
        """Consistent counts of the fine cells from what one answer, or the sum of all, says."""
        counts = found.arrays.get("counts")
        if counts is None or counts.shape != (self.grid.released_size,):
            raise ProtocolError("statistics of the wrong shape came back; the parties run another version")
        return self.grid.consistent(np.rint(counts))
