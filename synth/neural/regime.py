"""How a family trains, as numbers from its settings. Light: reading a plan reads this."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from synth.family import Declaration, Sampling, StatisticsNeed
from synth.neural.pretraining_settings import Pretraining
from synth.neural.server_settings import FED_AVG, ServerSettings
from synth.neural.vote_settings import VoteSettings

Weighting = Literal["rows", "similarity"]
Exchange = Literal["weights", "gradients"]
Update = Literal["average", "signds"]


@dataclass(frozen=True)
class Published:
    """The protocol of a family's paper, repeated with its gaps under `profile: faithful`."""

    noise_multiplier: float | None  # None: its accountant starts anew every round, and the noise is for one round
    gap: str  # what its accountant overlooks, which makes its ε nominal
    statistics: StatisticsNeed = "histogram"
    bins: bool = False  # whether its numbers are in bins
    votes: bool = False  # whether its clients vote for weights
    clients: bool = False  # whether it protects all that a client has, so that a plan may be about people


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
    exchange: Exchange = "weights"  # changes after local steps, each with its party's own noise; or sums for one step
    pretrain: Pretraining | None = None  # None: training starts from the released histograms alone
    votes: VoteSettings | None = None  # groups of rows vote for weights instead, one vote a step

    def carried_out(self, *, faithful: bool) -> Regime:
        """Where sums of gradients or votes are exchanged, a round is one step. What was published exchanges weights, or
        votes."""
        if self.votes is None and (faithful or self.exchange == "weights"):
            return replace(self, exchange="weights")
        steps = self.steps_per_round
        return replace(self, rounds=self.rounds * steps, steps_per_round=1, averaging=self.averaging ** (1 / steps))

    def declared(self, *, faithful: bool, private: bool = True) -> Declaration:
        """Fed-TGAN's weights compare the parties' histograms, so these are gathered."""
        compared: StatisticsNeed = "gathered histograms" if self.weighting == "similarity" else "histogram"
        published, regime = self.published if faithful else None, self.carried_out(faithful=faithful)
        return Declaration(
            asks=regime.rounds + (self.pretrain.asks(private=private) if self.pretrain else 0),
            answers="votes" if self.votes else "updates" if regime.exchange == "weights" else "gradients",
            sampling=Sampling(self.sample_rate, bool(published) and not self.votes, groups=self.votes is not None),
            statistics=published.statistics if published else compared,
            counted_share=self.pretrain.share if self.pretrain else 0.0,
            clients=published is not None and published.clients,
        )
