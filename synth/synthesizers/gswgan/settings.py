"""What a plan may say about `gswgan`. Kept apart from the networks so that reading a plan needs no torch."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from synth.family import Declaration
from synth.neural.central_settings import CentralSettings


class GswganSettings(CentralSettings):
    """Gradient-sanitised GAN: every row has a critic, which is never released; the sum of their slopes is."""

    name: Literal["gswgan"] = "gswgan"
    asks: int = Field(3, ge=1, le=1000, description="How often the parties are asked; few asks have less noise each.")
    made_up_rows: int = Field(400, ge=2, le=20_000, description="Rows of the generator that an ask carries.")
    loudest: float = Field(
        1.0, gt=0, description="Bound on the slopes of one row's critic, in units of those of a made-up row's."
    )

    def declared(self, *, private: bool, faithful: bool) -> Declaration:
        """Every row's critic answers every ask: nothing is sampled."""
        return Declaration(asks=self.asks, answers="gradients")
