"""Settings of a generator that only the aggregator has. Light: reading a plan reads this."""

from __future__ import annotations

from pydantic import Field

from synth.family import FamilySettings


class CentralSettings(FamilySettings):
    """A generator at the aggregator, taught by what the parties answer about rows that it made up."""

    bins: int = Field(20, ge=2, le=256, description="Most bins that a number is learned in.")
    width: int = Field(128, ge=1, le=4096, description="Hidden units of the generator.")
    code_width: int = Field(32, ge=1, le=4096, description="Random numbers that a row is made from.")
    codes: int = Field(
        1024, ge=2, le=1_000_000, description="Different codes; the blocks of a row are drawn given one of them."
    )
    teaching_steps: int = Field(150, ge=1, description="Steps of the generator after every answer; they cost nothing.")
    learning_rate: float = Field(2e-2, gt=0, description="Adam's step size in them; it falls evenly.")
    candidates: int = Field(5, ge=1, le=1000, description="Rows made per row kept; the released histograms choose.")
