"""What a plan may say about `update: signds`; the same words in every family that has it. Light: reading a plan reads
this."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from synth.schema import Strict

LARGEST_SHARE = 0.5  # of all weights: rounded down to whole weights, a larger one would tell more than is charged


class VoteSettings(Strict):
    """Groups of records vote, one sign each, for the weights that should move (SignDS-FL; SubMDS and MagRR of FedSTDG).
    A plan's sample_rate is then the share of the groups that vote in a round."""

    records_per_client: int = Field(
        10,
        ge=1,
        le=10_000,
        description="Records in a voting group, on average; drawn anew each round.",
    )
    local_optimizer: Literal["sgd", "adam"] = Field("sgd", description="How a group finds out what it wishes for.")
    local_steps: int = Field(1, ge=1, le=1000, description="Its steps; with one of 'sgd' it votes for its gradient.")
    local_rate: float = Field(1e-3, gt=0, description="Their size.")
    top: float = Field(0.1, gt=0, lt=1, description="Share of the weights that a group would vote for, of either sign.")
    among: int | None = Field(
        None, ge=4, description="Random weights that a vote chooses among (SubMDS); left out: all (perturbed sampling)."
    )
    chosen: int | None = Field(
        1, ge=1, description="Weights that a vote is for; null: the most of which a share of `precision` is meant."
    )
    precision: float = Field(0.8, gt=0, lt=1, description="See `chosen`.")
    step: float = Field(0.1, gt=0, description="How far one vote moves one weight.")
    bit_share: float = Field(
        0.0, ge=0, lt=1, description="Share of a vote's ε for a bit that says whether `step` should fall (MagRR)."
    )
    decay: float = Field(0.5, gt=0, lt=1, description="What `step` is multiplied by when the bits say so.")
    patience: int = Field(50, ge=1, description="Rounds whose bits are heard before that.")

    @model_validator(mode="after")
    def _countable(self) -> VoteSettings:
        if self.among is None and self.chosen != 1:
            raise ValueError("votes.chosen above 1 (or null) needs votes.among: how many weights a vote chooses among")
        if self.among is None and self.top > LARGEST_SHARE:
            raise ValueError(
                f"votes.top of all weights is at most {LARGEST_SHARE:g} of them; lower it, or set votes.among"
            )
        if self.among is not None and not 1 <= round(self.top * self.among) < self.among:
            raise ValueError("votes.top of votes.among weights must be some of them, and not all; change either")
        return self
