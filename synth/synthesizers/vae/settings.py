"""What a plan may say about `vae`. Kept apart from the network so that reading a plan needs no torch.

The defaults were tuned under differential privacy on two thirds of Adult's training rows against the other third: one
narrow layer a side, few numbers in between. `preset: published` is FedVAE on Adult instead.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from synth.neural.family_settings import AveragedSettings
from synth.neural.regime import Published

PUBLISHED_NOISE_MULTIPLIER = 1.0  # the thesis prints none


class VaeSettings(AveragedSettings):
    """Variational autoencoder (TVAE, FedVAE): rows are drawn from what its decoder thinks of random codes."""

    # The thesis's choice on Adult: 20 local epochs of batches of 200 rows, 100 rounds, weight decay 1e-4, Adam at
    # TVAE's 1e-3. A third of Adult has 8,683 rows in the thesis's split: 43 batches an epoch.
    published_values: ClassVar[dict[str, Any]] = {
        "exchange": "weights",
        "rounds": 100,
        "steps_per_round": 868,
        "sample_rate": 0.023,
        "learning_rate": 1e-3,
        "weight_decay": 1e-4,
        "depth": 2,
        "code_width": 64,
        "loss_factor": 4.0,
        "averaging": 0.0,
        "candidates": 1,
    }

    name: Literal["vae"] = "vae"
    weight_decay: float = Field(0.0, ge=0, description="Adam's L2 penalty.")
    code_width: int = Field(8, ge=1, le=4096, description="Numbers that a row is squeezed into.")
    loss_factor: float = Field(
        2.0, gt=0, description="How much more telling a row back counts than a code that looks like luck (TVAE's λ)."
    )

    @property
    def published(self) -> Published:
        noise = self.noise_multiplier or PUBLISHED_NOISE_MULTIPLIER
        return Published(noise, gap="mixtures fitted to exact rows", statistics="mixture rounds")
