"""What a plan may say about `bayes`. Kept apart from the search so that reading a plan is cheap.

The defaults are ours: the structure is found at the aggregator in noisy tables that were paid for. `preset: published`
fills in the thesis's protocol (FedBN, TU Wien 2024), which needs `profile: faithful`: the parties search, and show what
they find.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from synth.family import Declaration, FamilySettings


class BayesSettings(FamilySettings):
    """Bayesian network: FedGA's structure, conditional tables from summed noisy counts."""

    name: Literal["bayes"] = "bayes"
    preset: Literal["private", "published"] = Field(
        "private", description="Where values that the plan leaves out come from: ours, or the thesis's (for Adult)."
    )
    search: Literal["tables", "islands"] = Field(
        "tables",
        description="Where the structure is found: at the aggregator, in noisy tables of all pairs of columns; or at "
        "the parties, in exact ones, migrants going round (profile 'faithful' only).",
    )
    parents: int = Field(3, ge=1, le=4, description="Most parents of a column.")
    bins: int = Field(20, ge=2, le=512, description="Most bins of a numeric column; 'islands': of equal width.")
    labels: int = Field(
        64, ge=2, le=4096, description="Most bins of a discrete column; its rarest labels share one ('tables' only)."
    )
    pairs: int = Field(
        600, ge=1, description="Most pairs of columns to count in search of a structure, as for 'marginals'."
    )
    first_share: float = Field(
        0.3, gt=0, lt=1, description="Part of the counting budget (in ρ) for the pairs; the rest is for the families."
    )
    table_cells: int = Field(
        20_000, ge=4, le=10_000_000, description="Most cells of the table of a column and parents."
    )
    model_size_mb: float = Field(
        2.0, gt=0, le=1024, description="Limit on the model of pairs that the structure is found in, in megabytes."
    )
    population: int = Field(100, ge=2, description="Networks alive at a time in the genetic search.")
    survivors: int = Field(10, ge=1, description="Networks that live on and breed.")
    generations: int = Field(100, ge=1, description="Generations of the search in all.")
    interval: int = Field(20, ge=1, description="Generations between two migrations ('islands' only).")
    table_sensitivity: Literal[1, 2] = Field(
        2,
        description="Rows by which a table is taken to differ, for the Laplace noise of 'islands': 2 as in the thesis "
        "(one row replaced), 1 (one added or removed).",
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, value: Any) -> Any:
        return {**PUBLISHED, **value} if isinstance(value, dict) and value.get("preset") == "published" else value

    @model_validator(mode="after")
    def _breeds(self) -> BayesSettings:
        if self.survivors >= self.population:
            raise ValueError(f"survivors {self.survivors} must be fewer than the population {self.population}")
        return self

    @property
    def migrations(self) -> int:
        """Rounds of FedGA."""
        return -(-self.generations // self.interval)

    def declared(self, *, private: bool, faithful: bool) -> Declaration:
        """Pairs and families; or every migration, the scores of the last migrants, and families."""
        tables = self.search == "tables"
        return Declaration(asks=2 if tables else self.migrations + 2, answers="counts", by_columns=tables)


# Selected for Adult in the thesis; the number of parents, bins and generations are not printed there and were inferred
# from its figures and from the code it builds on.
PUBLISHED: dict[str, Any] = {
    "search": "islands",
    "labels": 4096,
    "table_cells": 1_000_000,
    "generations": 400,
}
