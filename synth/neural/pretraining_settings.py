"""What a plan may say about pretraining. Light: reading a plan reads this."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from synth.strict import Strict, is_absent


class Pretraining(Strict):
    """Part of the budget buys a release of `marginals`. Its rows cost nothing more: the network learns them first, by
    plain steps at the aggregator, and private steps follow."""

    share: float = Field(
        0.5, gt=0, lt=1, description="Part of the synthesizer's budget (in ρ) for the counts; the steps get the rest."
    )
    rounds: int = Field(1, ge=0, le=20, description="Further rounds of counts after the one over all pairs.")
    steps: int = Field(
        1500, ge=1, le=1_000_000, description="Plain steps at the aggregator, on rows drawn from the fitted counts."
    )
    pace: float = Field(
        0.1, gt=0, le=1, description="Of the learning rate, for the private steps: they correct and do not start over."
    )

    def asks(self, *, private: bool) -> int:
        """Exact counts need no second look."""
        return 1 + self.rounds if private else 1

    @property
    def counting(self) -> dict[str, Any]:
        """The settings of the family that counts."""
        return {"name": "marginals", "rounds": self.rounds}


Pretrain = Annotated[
    Pretraining | None,
    Field(
        exclude_if=is_absent,
        description="Learn rows of the plan's own `marginals` before the private steps. Left out: no.",
    ),
]
