"""How a family trains, as numbers from its settings. Light: reading a plan reads this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from synth.family import Declaration, Sampling, StatisticsNeed
from synth.neural.server_settings import FED_AVG, ServerSettings

Weighting = Literal["rows", "similarity"]


@dataclass(frozen=True)
class Published:
    """The protocol of a family's paper, repeated with its gaps under `profile: faithful`."""

    noise_multiplier: float | None  # None: its accountant starts anew every round, and the noise is for one round
    gap: str  # what its accountant overlooks, which makes its ε nominal
    statistics: StatisticsNeed = "histogram"


@dataclass(frozen=True)
class Regime:
    """Rounds of local steps. Everything that privacy depends on is here and in the plan."""

    rounds: int
    steps_per_round: int
    sample_rate: float  # with which every row joins a step
    l2_clip_norm: float  # bound on the gradient of one row
    weighting: Weighting = "rows"  # share of a party in the average: its declared rows, or Fed-TGAN's similarity
    averaging: float = 0.0  # memory of the running average over rounds that rows are drawn from; 0: the last round
    published: Published | None = None  # None: the family has no faithful profile
    server: ServerSettings = FED_AVG
    last_pace: float = 1.0  # of the learning rate in the last round, of that in the first; it falls evenly
    bins: int | None = None  # most bins that a number is learned in; None, and where published: mixtures

    def declared(self, *, faithful: bool) -> Declaration:
        """Fed-TGAN's weights compare the parties' histograms, so these are gathered."""
        compared: StatisticsNeed = "gathered histograms" if self.weighting == "similarity" else "histogram"
        published = self.published if faithful else None
        return Declaration(
            asks=self.rounds,
            answers="updates",
            sampling=Sampling(self.sample_rate, as_published=published is not None),
            statistics=published.statistics if published else compared,
        )
