"""What an assessment found, in the words of its file and of the certificate that signs it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from synth.schema import Strict

CONFIDENCE = 0.95


class Figure(Strict):
    """One score on the parties' rows, as far as the noise lets it be known."""

    value: float = Field(description="The estimate.")
    low: float = Field(description="The score is at least this, at the stated confidence.")
    high: float = Field(description="The score is at most this, at the stated confidence.")
    noise_floor: float | None = Field(None, description="What the noise alone would show for a perfect table.")


class Verdict(Strict):
    """One limit of the gate, held against its figure."""

    limit: str = Field(description="The limit's name in the plan.")
    bound: float = Field(description="The limit.")
    outcome: Literal["passed", "failed", "undecided"] = Field(
        description="'passed': shown to hold; 'failed': shown not to; 'undecided': the noise leaves it open."
    )


class AssessmentRecord(Strict):
    """Scores of the synthetic table on the rows it was made from, all of them differentially private."""

    rows: Literal["the parties' training rows"] = Field(
        "the parties' training rows",
        description="What it was scored on: no rows were held out, so scores are optimistic.",
    )
    confidence: float = Field(CONFIDENCE, description="Of each end of each interval, noise being the only error.")
    coverage: float = Field(description="Share of the plan's declared rows whose parties took part.")
    figures: dict[str, Figure] = Field(description="The scores, by name.")
    cost: list[dict[str, Any]] = Field(description="The events charged to every party for the assessment.")
    epsilon: float | None = Field(description="ε of these events alone, at the plan's δ; part of the run's ε.")
    verdicts: list[Verdict] = Field([], description="The gate's, limit by limit; empty without a gate.")

    @property
    def withheld(self) -> bool:
        """Whether the table must not be handed out without being asked for by name."""
        return any(verdict.outcome != "passed" for verdict in self.verdicts)

    def reasons(self) -> str:
        """Why the gate is closed, in words."""
        return "; ".join(
            f"{each.limit} {each.bound:g} {'is not kept' if each.outcome == 'failed' else 'could not be shown'} "
            f"({_said(self.figures[figure_of(each.limit)])})"
            for each in self.verdicts
            if each.outcome != "passed"
        )


def figure_of(limit: str) -> str:
    """minimum_auroc → auroc"""
    return limit.split("_", 1)[1]


def _said(figure: Figure) -> str:
    return f"measured {figure.value:.4f}, between {figure.low:.4f} and {figure.high:.4f}"
