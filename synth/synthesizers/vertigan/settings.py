"""What a plan may say about `vertigan`. Kept apart from the networks so that reading a plan needs no torch."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from synth.family import Declaration, Sampling
from synth.neural.central_settings import CentralSettings
from synth.strict import Strict


class PublishedVertiganSettings(Strict):
    """The protocol as published, of `profile: faithful` alone."""

    rounds: int = Field(1500, ge=1, le=100_000, description="Steps of the generator; each is an ask.")
    critic_steps: int = Field(10, ge=1, description="Private steps of every party's critic in a round.")
    batch: int = Field(1000, ge=1, description="Rows of a step, which everybody knows by a common seed.")


class VertiganSettings(CentralSettings):
    """A generator taught by noisy tables of pairs of columns, and by a critic of every party's own columns."""

    name: Literal["vertigan"] = "vertigan"
    pairs: int = Field(600, ge=1, description="Most pairs of columns to count; the target's first.")
    tables_share: float = Field(
        0.9, gt=0, lt=1, description="Part of the synthesizer's budget (in ρ) that the tables get; critics the rest."
    )
    rounds: int = Field(3, ge=1, le=10_000, description="How often critics learn and judge made-up rows.")
    critic_steps: int = Field(10, ge=1, description="Private steps of every party's critic in a round.")
    made_up_rows: int = Field(400, ge=2, le=20_000, description="Rows of the generator that an ask carries.")
    sample_rate: float = Field(
        0.05, gt=0, le=0.5, description="Probability with which a row joins one step's batch, by the party's own coin."
    )
    l2_clip_norm: float = Field(1.0, gt=0, description="Bound on the gradient of one row.")
    critic_learning_rate: float = Field(1e-3, gt=0, description="Adam's step size of the critics.")
    critic_weight: float = Field(0.05, ge=0, description="How much the critics count beside the tables.")

    published: PublishedVertiganSettings = Field(
        default_factory=PublishedVertiganSettings, description="What `profile: faithful` runs instead."
    )

    def declared(self, *, private: bool, faithful: bool) -> Declaration:
        if faithful:
            sampling = Sampling(self.sample_rate, as_published=True)
            asks = self.published.rounds
            return Declaration(
                asks=asks, answers="updates", sampling=sampling, by_columns=True, published_by_columns=True
            )
        sampling = Sampling(self.sample_rate)
        return Declaration(asks=1 + self.rounds, answers="updates", sampling=sampling, by_columns=True)
