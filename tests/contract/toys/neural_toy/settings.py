"""What a plan may say about the toy."""

from typing import Literal

from pydantic import Field

from synth.family import Declaration, FamilySettings
from synth.neural.regime import Regime


class ToySettings(FamilySettings):
    """A tiny autoregressive network."""

    name: Literal["neural_toy"] = "neural_toy"
    rounds: int = Field(2, ge=1, description="Rounds of local training and averaging.")
    width: int = Field(8, ge=1, description="Numbers that the cell remembers of a row.")

    def regime(self) -> Regime:
        return Regime(self.rounds, steps_per_round=2, sample_rate=0.2, l2_clip_norm=1.0)

    def declared(self, *, private: bool, faithful: bool) -> Declaration:
        return self.regime().declared(faithful=faithful)
