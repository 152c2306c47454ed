"""What a plan may say about `findiff`. Kept apart from the networks so that reading a plan needs no torch.

The defaults were tuned under differential privacy on two thirds of Adult's training rows against the other third.
`preset: published` has the paper's values; under `profile: faithful` they drive the paper's own diffusion.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from synth.neural.family_settings import AveragedSettings
from synth.neural.regime import Published

RESET = "an accountant that starts anew in every round, and mixtures fitted to exact rows"


class FindiffSettings(AveragedSettings):
    """Diffusion of tables (FinDiff, DP-Fed-FinDiff), trained by averaging the parties' DP-SGD updates."""

    # Sattarov et al. 2024: three layers of 1024, T = 500, Adam at FinDiff's 1e-4, Γ = 100 over up to 3000 rounds of
    # batches of 16, which on a fifth of Adult is a rate of 0.00246.
    published_values: ClassVar[dict[str, Any]] = {
        "exchange": "weights",
        "rounds": 3000,
        "steps_per_round": 100,
        "sample_rate": 0.00246,
        "learning_rate": 1e-4,
        "width": 1024,
        "depth": 3,
        "averaging": 0.0,
        "candidates": 1,
    }

    name: Literal["findiff"] = "findiff"
    learning_rate: float = Field(3e-2, gt=0, description="Adam's step size in the first round; it falls evenly.")
    draws: int = Field(
        4, ge=1, le=64, description="Masks per row and step, averaged before its gradient is clipped: costs no privacy."
    )
    diffusion_steps: int = Field(500, ge=2, le=10_000, description="Steps of the published diffusion (its T).")

    @property
    def published(self) -> Published:
        return Published(self.noise_multiplier, gap=RESET, statistics="mixture rounds")
