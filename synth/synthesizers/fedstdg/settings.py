"""What a plan may say about `fedstdg`. Kept apart from the networks so that reading a plan needs no torch."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from synth.neural.family_settings import AveragedSettings
from synth.neural.regime import Published

GAP = "votes at the whole ε each, in every round in which a client is asked"


class FedstdgSettings(AveragedSettings):
    """Recurrent Wasserstein autoencoder (FedSTDG): sequences told back step by step from random codes."""

    # The paper's choice on energy: 1,000 rounds of 50 of its 1,973 clients of ten windows, ten epochs of Adam, votes
    # among a tenth of the weights (SubMDS), half of which count as the client's, for as many as are meant in four of
    # five cases, a first step of 25 / 50 a vote, and a tenth of ε for the bit that halves it (MagRR).
    published_values: ClassVar[dict[str, Any]] = {
        "update": "signds",
        "rounds": 1000,
        "steps_per_round": 1,
        "sample_rate": 0.0254,
        "width": 32,
        "code_width": 16,
        "bins": 256,
        "penalty": 1.0,
        "code_noise": 0.0,
        "averaging": 0.0,
        "candidates": 1,
        "votes": {
            "records_per_client": 10,
            "local_optimizer": "adam",
            "local_steps": 10,
            "top": 0.5,
            "among": 2974,
            "chosen": None,
            "precision": 0.8,
            "step": 0.5,
            "bit_share": 0.1,
        },
    }

    name: Literal["fedstdg"] = "fedstdg"
    learning_rate: float = Field(1e-2, gt=0, description="Adam's step size in the first round; it falls evenly.")
    width: int = Field(32, ge=1, le=1024, description="Units of the recurrent layers.")
    code_width: int = Field(8, ge=1, le=4096, description="Numbers that a sequence is squeezed into.")
    penalty: float = Field(10.0, ge=0, description="How much codes that look like luck count beside telling rows back.")
    code_noise: float = Field(0.4, ge=0, description="Deviation of what is added to a code before it is told back.")
    own_rows: int = Field(256, ge=2, le=65_536, description="Sequences of its own that the model is held against.")

    @property
    def published(self) -> Published:
        return Published(None, gap=GAP, bins=True, votes=True, clients=True)
