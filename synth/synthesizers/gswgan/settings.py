"""What a plan may say about `gswgan`. Kept apart from the networks so that reading a plan needs no torch."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from synth.family import Declaration, Sampling
from synth.neural.central_settings import CentralSettings
from synth.strict import Strict


class PublishedGan(Strict):
    """The protocol as published, of `profile: faithful` alone."""

    critics: int = Field(500, ge=1, le=100_000, description="Of a party, each on its own shard of the rows.")
    steps: int = Field(2000, ge=1, le=100_000, description="Steps of the generator; each is an ask.")
    rows: int = Field(32, ge=2, le=10_000, description="Made-up rows that a step is about.")
    critic_steps: int = Field(5, ge=1, description="Steps of the critic that answers, before it does.")
    warm_start_steps: int = Field(2000, ge=0, description="Steps of a critic's own throw-away generator, once.")
    noise_multiplier: float = Field(1.07, gt=0, description="Noise over what one row's slopes can change by.")


class GswganSettings(CentralSettings):
    """Gradient-sanitised GAN: every row has a critic, which is never released; the sum of their slopes is."""

    name: Literal["gswgan"] = "gswgan"
    asks: int = Field(3, ge=1, le=1000, description="How often the parties are asked; few asks have less noise each.")
    made_up_rows: int = Field(400, ge=2, le=20_000, description="Rows of the generator that an ask carries.")
    loudest: float = Field(
        1.0, gt=0, description="Bound on the slopes of one row's critic, in units of those of a made-up row's."
    )

    published: PublishedGan = Field(default_factory=PublishedGan, description="What `profile: faithful` runs instead.")

    def declared(self, *, private: bool, faithful: bool) -> Declaration:
        """Every row's critic answers every ask: nothing is sampled. As published, a critic is, and remembers it."""
        if faithful:
            sampling = Sampling(1 / self.published.critics, as_published=True)
            return Declaration(asks=self.published.steps, answers="updates", sampling=sampling)
        return Declaration(asks=self.asks, answers="gradients")
