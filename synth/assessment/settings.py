"""What a plan may say about the assessment, and about the gate that its figures must pass."""

from __future__ import annotations

from pydantic import Field, model_validator

from synth.schema import Strict


class AssessmentSettings(Strict):
    """The parties score the synthetic table against their rows; only noisy sums of the scores leave."""

    share: float = Field(
        0.1, gt=0, lt=1, description="Part of the plan's budget (in zCDP's ρ) that the scores may cost."
    )
    pairs: int = Field(
        20,
        ge=1,
        description="Pairs of columns to compare: the target's, then neighbours in the schema's order. Each more "
        "makes all of them noisier.",
    )
    bins: int = Field(6, ge=2, le=64, description="Most bins of a column in these comparisons.")


class GateSettings(Strict):
    """Limits that every figure must be shown to keep, at 95 % confidence each; else the table is withheld."""

    minimum_auroc: float | None = Field(
        None, ge=0, le=1, description="Least AUROC, on the parties' rows, of a scorecard trained on the table."
    )
    minimum_accuracy: float | None = Field(None, ge=0, le=1, description="Least accuracy of the same scorecard.")
    maximum_tvd_one_way: float | None = Field(
        None, ge=0, le=1, description="Largest total variation distance to the rows, mean over columns."
    )
    maximum_tvd_two_way: float | None = Field(
        None, ge=0, le=1, description="Largest total variation distance to the rows, mean over the compared pairs."
    )
    maximum_copy_share: float | None = Field(
        None, ge=0, le=1, description="Largest share of the parties' rows that occur in the table, cell for cell."
    )
    maximum_copy_excess: float | None = Field(
        None, ge=0, le=1, description="Largest share of such rows beyond what coincidence explains."
    )

    @model_validator(mode="after")
    def _says_something(self) -> GateSettings:
        if not self.limits:
            raise ValueError("a gate without a limit lets everything through; state one, or leave the gate out")
        return self

    @property
    def limits(self) -> dict[str, float]:
        """The limits that were stated, by name."""
        return {name: value for name, value in self.model_dump().items() if value is not None}
