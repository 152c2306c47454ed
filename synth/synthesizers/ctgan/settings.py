"""What a plan may say about `ctgan`. Kept apart from the networks so that reading a plan needs no torch."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from synth.schema import Strict


class CtganSettings(Strict):
    """Conditional tabular GAN, trained by averaging the parties' DP-SGD updates."""

    name: Literal["ctgan"] = "ctgan"
    rounds: int = Field(20, ge=1, description="Rounds of local training and averaging.")
    steps_per_round: int = Field(50, ge=1, description="Discriminator steps a party takes in one round.")
    sample_rate: float = Field(
        0.05, gt=0, le=1, description="Probability with which a row joins one step's batch (Poisson sampling)."
    )
    weighting: Literal["rows", "similarity"] = Field(
        "rows", description="Share of a party in the average: its declared rows, or Fed-TGAN's similarity."
    )
