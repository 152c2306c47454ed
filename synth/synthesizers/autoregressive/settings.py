"""What a plan may say about `autoregressive`. Kept apart from the networks so that reading a plan needs no torch."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from synth.family import Declaration, FamilySettings
from synth.neural.family_settings import LAST_PACE
from synth.neural.pretraining_settings import Pretrain
from synth.neural.regime import Regime


class AutoregressiveSettings(FamilySettings):
    """Every column guessed from the columns before it; trained by steps that all parties' gradients are summed for."""

    name: Literal["autoregressive"] = "autoregressive"
    steps: int = Field(300, ge=1, le=100_000, description="Training steps; each is a round.")
    sample_rate: float = Field(
        0.05, gt=0, le=1, description="Probability with which a row joins one step's batch (Poisson sampling)."
    )
    l2_clip_norm: float = Field(1.0, gt=0, description="Bound on the gradient of one row.")
    learning_rate: float = Field(3e-2, gt=0, description="Adam's step size in the first step; it falls evenly.")
    width: int = Field(32, ge=1, le=1024, description="Hidden units of each column's network.")
    bins: int = Field(20, ge=2, le=256, description="Most bins that a number is learned in.")
    averaging: float = Field(
        0.95, ge=0, lt=1, description="Memory of the running average over steps that rows are drawn from; 0: the last."
    )
    candidates: int = Field(5, ge=1, le=1000, description="Rows made per row kept; the released histograms choose.")
    pretrain: Pretrain = None

    def regime(self) -> Regime:
        return Regime(
            rounds=self.steps,
            steps_per_round=1,
            sample_rate=self.sample_rate,
            l2_clip_norm=self.l2_clip_norm,
            averaging=self.averaging,
            bins=self.bins,
            exchange="gradients",
            last_pace=LAST_PACE,
            pretrain=self.pretrain,
        )

    def declared(self, *, private: bool, faithful: bool) -> Declaration:
        return self.regime().declared(faithful=faithful, private=private)
