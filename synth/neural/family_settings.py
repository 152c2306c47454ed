"""Settings that every family of averaged weights on bins has; it adds its own and says what its paper had."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from synth.family import Declaration, FamilySettings
from synth.neural.pretraining_settings import Pretrain
from synth.neural.regime import Exchange, Published, Regime, Update
from synth.neural.server_settings import ServerSettings
from synth.neural.vote_settings import VoteSettings

LAST_PACE = 0.05  # of the learning rate: it falls evenly from round to round


class AveragedSettings(FamilySettings):
    """Rounds of private steps on bins of the released histogram; rows are fitted to it when they are drawn."""

    published_values: ClassVar[dict[str, Any]] = {}  # what `preset: published` fills in

    preset: Literal["compact", "published"] = Field(
        "compact", description="Where values that the plan leaves out come from: ours, or the published ones."
    )
    rounds: int = Field(40, ge=1, description="Rounds of local training and averaging.")
    steps_per_round: int = Field(10, ge=1, description="Steps a party takes in one round.")
    sample_rate: float = Field(
        0.05, gt=0, le=1, description="Probability with which a row joins one step's batch (Poisson sampling)."
    )
    l2_clip_norm: float = Field(1.0, gt=0, description="Bound on the gradient of one row.")
    learning_rate: float = Field(2e-2, gt=0, description="Adam's step size in the first round; it falls evenly.")
    width: int = Field(64, ge=1, le=4096, description="Units of each hidden layer.")
    depth: int = Field(1, ge=1, le=8, description="Hidden layers, of each network.")
    bins: int = Field(24, ge=2, le=256, description="Most bins that a number is learned in; faithful: none.")
    averaging: float = Field(
        0.6, ge=0, lt=1, description="Memory of the running average over rounds that rows are drawn from; 0: the last."
    )
    candidates: int = Field(5, ge=1, le=1000, description="Rows made per row kept; the released histograms choose.")
    exchange: Exchange = Field(
        "gradients",
        description="'gradients': every step is a round and the parties sum their gradients, so that privacy.noise "
        "'shared' holds for them too. 'weights': a round is several steps at every party, each with all of its noise; "
        "`server` says what is made of them.",
    )
    server: ServerSettings = Field(default_factory=ServerSettings, description="The federated optimiser.")
    pretrain: Pretrain = None
    update: Update = Field(
        "average",
        description="'average': steps of clipped gradients, exchanged as `exchange` says. 'signds': groups of records "
        "vote for weights under local privacy, and the parties sum votes (see `votes`); a step is a round.",
    )
    votes: VoteSettings = Field(default_factory=VoteSettings, description="How groups vote with update 'signds'.")
    noise_multiplier: float | None = Field(
        None, gt=0, description="Noise of the faithful profile, its own if left out. The rigorous one computes it."
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, value: Any) -> Any:
        published = isinstance(value, dict) and value.get("preset") == "published"
        return {**cls.published_values, **value} if published else value

    @property
    @abstractmethod
    def published(self) -> Published:
        """The paper's protocol."""

    def regime(self) -> Regime:
        return Regime(
            self.rounds,
            self.steps_per_round,
            self.sample_rate,
            self.l2_clip_norm,
            averaging=self.averaging,
            published=self.published,
            server=self.server,
            last_pace=LAST_PACE,
            bins=self.bins,
            exchange=self.exchange,
            pretrain=self.pretrain,
            votes=self.votes if self.update == "signds" else None,
        )

    def declared(self, *, private: bool, faithful: bool) -> Declaration:
        return self.regime().declared(faithful=faithful, private=private)
