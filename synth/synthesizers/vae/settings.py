"""What a plan may say about `vae`. Kept apart from the network so that reading a plan needs no torch.

The defaults were tuned under differential privacy on two thirds of Adult's training rows against the other third: one
narrow layer a side, few numbers in between, many small steps. `preset: published` is FedVAE on Adult instead.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from synth.family import Declaration, FamilySettings
from synth.neural.regime import Published, Regime
from synth.neural.server_settings import ServerSettings

PUBLISHED_NOISE_MULTIPLIER = 1.0  # the thesis prints none


class VaeSettings(FamilySettings):
    """Variational autoencoder (TVAE, FedVAE): rows are drawn from what its decoder thinks of random codes."""

    name: Literal["vae"] = "vae"
    preset: Literal["compact", "published"] = Field(
        "compact", description="Where values that the plan leaves out come from: ours, or FedVAE's on Adult."
    )
    rounds: int = Field(60, ge=1, description="Rounds of local training and averaging.")
    steps_per_round: int = Field(10, ge=1, description="Steps a party takes in one round.")
    sample_rate: float = Field(
        0.05, gt=0, le=1, description="Probability with which a row joins one step's batch (Poisson sampling)."
    )
    l2_clip_norm: float = Field(1.0, gt=0, description="Bound on the gradient of one row.")
    learning_rate: float = Field(6e-3, gt=0, description="Adam's step size.")
    weight_decay: float = Field(0.0, ge=0, description="Adam's L2 penalty.")
    width: int = Field(64, ge=1, le=4096, description="Units of each hidden layer, encoder and decoder alike.")
    depth: int = Field(1, ge=1, le=8, description="Hidden layers a side.")
    code_width: int = Field(16, ge=1, le=4096, description="Numbers that a row is squeezed into.")
    bins: int = Field(24, ge=2, le=256, description="Most bins that a number is learned in; faithful: mixtures.")
    loss_factor: float = Field(
        4.0, gt=0, description="How much more telling a row back counts than a code that looks like luck (TVAE's λ)."
    )
    averaging: float = Field(
        0.8, ge=0, lt=1, description="Memory of the running average over rounds that rows are drawn from; 0: the last."
    )
    candidates: int = Field(3, ge=1, le=1000, description="Rows made per row kept; the released histograms choose.")
    server: ServerSettings = Field(default_factory=ServerSettings, description="The federated optimiser.")
    noise_multiplier: float | None = Field(
        None, gt=0, description="Noise of the faithful profile (1 if left out). The rigorous one computes it from ε, δ."
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, value: Any) -> Any:
        published = isinstance(value, dict) and value.get("preset") == "published"
        return {**PUBLISHED, **value} if published else value

    def regime(self) -> Regime:
        published = Published(
            noise_multiplier=self.noise_multiplier or PUBLISHED_NOISE_MULTIPLIER,
            gap="mixtures fitted to exact rows",
            statistics="mixture rounds",
        )
        return Regime(
            self.rounds,
            self.steps_per_round,
            self.sample_rate,
            self.l2_clip_norm,
            averaging=self.averaging,
            published=published,
            server=self.server,
            bins=self.bins,
        )

    def declared(self, *, private: bool, faithful: bool) -> Declaration:
        return self.regime().declared(faithful=faithful)


# The thesis's choice on Adult: 20 local epochs of batches of 200 rows, 100 rounds, weight decay 1e-4, Adam at TVAE's
# 1e-3. A third of Adult has 8,683 rows in the thesis's split: 43 batches an epoch.
PUBLISHED: dict[str, Any] = {
    "rounds": 100,
    "steps_per_round": 868,
    "sample_rate": 0.023,
    "learning_rate": 1e-3,
    "weight_decay": 1e-4,
    "width": 64,
    "depth": 2,
    "code_width": 64,
    "loss_factor": 4.0,
    "averaging": 0.0,
    "candidates": 1,
}
