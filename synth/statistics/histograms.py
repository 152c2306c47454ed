"""The first question of every run: one noisy histogram per column, from which everything else is fitted.

Published protocols send category lists, mixture parameters and conditional vectors, each exact and each a leak. Here
every party counts its rows over the *declared* cells of every column, adds integer noise, and only the sum is opened.
Mixtures, condition frequencies and quantiles are then functions of that one release: post-processing, free of charge.
With privacy "none" the same counts are released exactly, and the certificate says that nothing is promised.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from synth.budget import statistics_event
from synth.encoding.cells import Cells
from synth.encoding.mixtures import Mixture
from synth.encoding.records import Records
from synth.errors import ProtocolError
from synth.interface import Answer, Array, Arrays, Ask, Inquiry, Sum
from synth.messages.asked import exactly, whole_numbers
from synth.plan import Plan
from synth.privacy.events import CountNoise, Event, Unaccounted
from synth.privacy.noise import NoiseSource
from synth.privacy.shares import share_of, summed_variance

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

    def to_arrays(self) -> Arrays:
        arrays = {"counts": self.counts, "variance": np.array(self.variance), "covered": np.array(self.covered)}
        arrays |= {f"party/{name}": counts for name, counts in self.by_party.items()}
        return arrays | {f"mixture/{k}": np.stack([m.weights, m.means, m.stds]) for k, m in self.mixtures.items()}

    @classmethod
    def from_arrays(cls, plan: Plan, arrays: Arrays) -> Statistics:
        parties = {k.removeprefix("party/"): v for k, v in arrays.items() if k.startswith("party/")}
        mixtures = {k.removeprefix("mixture/"): Mixture(*v) for k, v in arrays.items() if k.startswith("mixture/")}
        cells = Cells(plan.table, plan.statistics.bins)
        covered = float(arrays.get("covered", np.array(1.0)))
        return cls(cells, arrays["counts"], float(arrays["variance"]), covered, parties, mixtures)

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
        self.cells = Cells(plan.table, plan.statistics.bins)
        self.event = statistics_event(plan, self.cells.queries)
        self.statistics: Statistics | None = None

    def ask(self, number: int) -> Ask | None:
        if number > 0:
            return None
        return Ask(options={"phase": self.phase}, combine="gather" if self.plan.family.gathers else "sum")

    def absorb(self, total: Sum) -> None:
        by_party = {party: self._checked(answer) for party, answer in total.by_party.items()}
        variance = summed_variance(self.plan, self.event, len(total.parties)) if self.event else 0.0
        self.statistics = Statistics(self.cells, self._checked(total), variance, total.weight, by_party)

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

    def answer(self, ask: Ask, party: str, data: Records, local: Arrays, noise: NoiseSource) -> tuple[Answer, Arrays]:
        counts = self.cells.count(data)
        if self.event is not None:
            counts = counts + noise.child("counts").skellam(share_of(self.plan, self.event), self.cells.size)
        return Answer({"counts": counts}, weight=self.plan.share(party)), local

    def _checked(self, found: Answer | Sum) -> Array:
        counts = found.arrays.get("counts")
        if counts is None or counts.shape != (self.cells.size,):
            raise ProtocolError("statistics of the wrong shape came back; the parties run another version")
        return np.rint(counts).astype(np.int64)
