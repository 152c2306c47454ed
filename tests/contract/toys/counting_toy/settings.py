"""What a plan may say about the toy."""

from typing import Literal

from pydantic import Field

from synth.family import Declaration, FamilySettings


class ToySettings(FamilySettings):
    """A star of pairs around the target."""

    name: Literal["counting_toy"] = "counting_toy"
    bins: int = Field(8, ge=2, description="Most bins of a column in a table.")

    def declared(self, *, private: bool, faithful: bool) -> Declaration:
        return Declaration(asks=1, answers="counts")
