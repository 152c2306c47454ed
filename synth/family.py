"""What a model family declares about itself in its settings, so that nobody outside has to know which family it is.

The plan, the programme of asks, the certificate and a party's description of the plan read this one value; a family
with other statistics or another sampler changes its own settings and nothing else.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

from synth.strict import Strict

MIXTURE_ROUNDS = 5  # of Leitner's Algorithm 4.1, faithful profile only

StatisticsNeed = Literal["histogram", "gathered histograms", "mixture rounds"]


@dataclass(frozen=True)
class Sampling:
    """How rows are chosen for training: all of them (no rate), by Poisson sampling, or as a paper did it."""

    rate: float | None = None
    as_published: bool = False  # then the accountant's assumption of Poisson sampling does not hold
    groups: bool = False  # whether groups of rows are chosen, secretly, without replacement

    def in_words(self, units: str = "rows", unit: str = "row") -> str:
        if self.rate is None:
            return f"No {unit} sampling: every release uses all {units} once."
        if self.as_published:
            return "Training-by-sampling as published: the accountant's assumption of Poisson sampling does not hold."
        if self.groups:
            return f"Of a fixed number of groups of {units}, a secret share of {self.rate:g} votes in every round."
        return f"Poisson: every {unit} joins every training step independently with probability {self.rate:g}."


ALL_ROWS = Sampling()


@dataclass(frozen=True)
class Declaration:
    """A family under one plan."""

    asks: int  # of its training
    answers: Literal["counts", "updates", "gradients", "votes"]  # noisy counts or sums, changes of weights, votes
    sampling: Sampling = ALL_ROWS
    statistics: StatisticsNeed = "histogram"  # what must be known before training
    series: bool = False  # whether it draws series of any length from counts of neighbouring steps
    counted_share: float = 0.0  # of its ρ; where more than 0, it asks for counts before it trains
    clients: bool = False  # whether a plan about people may repeat its paper, which protects all that a client has
    by_columns: bool = False  # whether it can be made where parties hold different columns of the same people
    published_by_columns: bool = False  # whether a paper's protocol is repeated that is about that, without any tables

    @property
    def statistics_asks(self) -> int:
        return MIXTURE_ROUNDS if self.statistics == "mixture rounds" else 1

    @property
    def gathers(self) -> bool:
        """Whether the aggregator compares the parties' statistics, and so sees them one by one."""
        return self.statistics != "histogram"


class FamilySettings(Strict):
    """The settings of a family. Light: reading a plan must not load the family's code."""

    name: str  # a Literal of one value in every family: a plan's settings are told apart by it

    @abstractmethod
    def declared(self, *, private: bool, faithful: bool) -> Declaration:
        """What the family asks, answers, samples and needs to know, with or without privacy and by either profile."""
