"""What a plan may say about `findiff`. Kept apart from the networks so that reading a plan needs no torch.

The defaults were tuned under differential privacy on two thirds of Adult's training rows against the other third.
`preset: published` has the paper's values; under `profile: faithful` they drive the paper's own diffusion.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from synth.family import Declaration, FamilySettings
from synth.neural.regime import Published, Regime
from synth.neural.server_settings import ServerSettings

RESET = "an accountant that starts anew in every round, and mixtures fitted to exact rows"

LAST_PACE = 0.05  # of the learning rate: it falls evenly from round to round


class FindiffSettings(FamilySettings):
    """Diffusion of tables (FinDiff, DP-Fed-FinDiff), trained by averaging the parties' DP-SGD updates."""

    name: Literal["findiff"] = "findiff"
    preset: Literal["compact", "published"] = Field(
        "compact", description="Where values that the plan leaves out come from: ours, or the paper's."
    )
    rounds: int = Field(40, ge=1, description="Rounds of local training and averaging.")
    steps_per_round: int = Field(10, ge=1, description="Steps a party takes in one round (the paper's Γ).")
    sample_rate: float = Field(
        0.05, gt=0, le=1, description="Probability with which a row joins one step's batch (Poisson sampling)."
    )
    l2_clip_norm: float = Field(1.0, gt=0, description="Bound on the gradient of one row.")
    learning_rate: float = Field(3e-2, gt=0, description="Adam's step size in the first round.")
    width: int = Field(64, ge=1, le=4096, description="Units of each hidden layer.")
    depth: int = Field(1, ge=1, le=8, description="Hidden layers.")
    bins: int = Field(24, ge=2, le=256, description="Most bins that a number is learned in; faithful: none.")
    draws: int = Field(
        4, ge=1, le=64, description="Masks per row and step, averaged before its gradient is clipped: costs no privacy."
    )
    diffusion_steps: int = Field(500, ge=2, le=10_000, description="Steps of the published diffusion (its T).")
    averaging: float = Field(
        0.8, ge=0, lt=1, description="Memory of the running average over rounds that rows are drawn from; 0: the last."
    )
    candidates: int = Field(3, ge=1, le=1000, description="Rows made per row kept; the released histograms choose.")
    server: ServerSettings = Field(default_factory=ServerSettings, description="The federated optimiser.")
    noise_multiplier: float | None = Field(
        None,
        gt=0,
        description="Noise of the faithful profile. Left out: what its accountant, reset every round, thinks enough.",
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, value: Any) -> Any:
        published = isinstance(value, dict) and value.get("preset") == "published"
        return {**PUBLISHED, **value} if published else value

    def regime(self) -> Regime:
        return Regime(
            self.rounds,
            self.steps_per_round,
            self.sample_rate,
            self.l2_clip_norm,
            averaging=self.averaging,
            published=Published(self.noise_multiplier, gap=RESET, statistics="mixture rounds"),
            server=self.server,
            last_pace=LAST_PACE,
            bins=self.bins,
        )

    def declared(self, *, private: bool, faithful: bool) -> Declaration:
        return self.regime().declared(faithful=faithful)


# Sattarov et al. 2024: three layers of 1024, T = 500, Adam at FinDiff's 1e-4, Γ = 100 over up to 3000 rounds of batches
# of 16, which on a fifth of Adult is a rate of 0.00246.
PUBLISHED: dict[str, Any] = {
    "rounds": 3000,
    "steps_per_round": 100,
    "sample_rate": 0.00246,
    "learning_rate": 1e-4,
    "width": 1024,
    "depth": 3,
    "draws": 1,
    "averaging": 0.0,
    "candidates": 1,
}
