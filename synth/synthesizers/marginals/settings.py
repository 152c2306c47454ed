"""What a plan may say about `marginals`. Kept apart from the model so that reading a plan is cheap."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from synth.family import Declaration, FamilySettings


class MarginalsSettings(FamilySettings):
    """Noisy contingency tables of pairs of columns, and a graphical model fitted to them."""

    name: Literal["marginals"] = "marginals"
    bins: int = Field(20, ge=2, le=512, description="Most bins of a numeric column in a table; fewer where rows are.")
    labels: int = Field(
        64, ge=2, le=4096, description="Most bins of a discrete column in a table; its rarest labels share one."
    )
    pairs: int = Field(
        600,
        ge=1,
        description="Most pairs of columns to count. In wider tables: the target's pairs, then neighbours in the "
        "schema's order, as far as this number goes.",
    )
    rounds: int = Field(
        1,
        ge=0,
        le=20,
        description="Further rounds after the one over all pairs, each counting again the pairs that the model so far "
        "is made of. 0 is one-shot, 1 two-stage, more adaptive; each leaves less of the budget to the others.",
    )
    round_pairs: int = Field(
        40,
        ge=1,
        description="Tables counted in each further round (all pairs, if there are fewer): pairs, or pairs with the "
        "target where little noise makes that worth more.",
    )
    first_share: float = Field(
        0.4, gt=0, lt=1, description="Part of the counting budget (in ρ) for the first round when others follow."
    )
    model_size_mb: float = Field(
        2.0, gt=0, le=1024, description="Limit on the tables of the fitted model, in megabytes."
    )
    iterations: int = Field(1000, ge=1, description="Most steps of the fit; it stops earlier when it no longer gains.")

    def declared(self, *, private: bool, faithful: bool) -> Declaration:
        """Exact counts need no second look."""
        asks = 1 + self.rounds if private else 1
        return Declaration(asks=asks, answers="counts", series=True, by_columns=True)
