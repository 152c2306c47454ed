"""The event of votes. Light: reading a ledger or a plan reads this."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from synth.errors import PrivacyError
from synth.privacy.checks import require_count, require_positive
from synth.privacy.event import Event
from synth.units import NOUNS

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    from synth.privacy.losses import Floats


@dataclass(frozen=True)
class Votes(Event):
    """`steps` sums of votes, each of a random share of a party's clients.

    Everything that belongs to a unit is with one of a fixed number of clients. In every step a secret sample of these,
    drawn without replacement, of at most `sample_rate` of them, vote; what leaves is the sum of the votes. A vote
    names `chosen` of `dimensions` coordinates. Of these `top` are what the client would vote for, and sets that hold
    `threshold` or more of the client's are `epsilon` likelier, in logarithms, than sets that do not, all else being
    uniform (SignDS-FL's EM-MDS; perturbed sampling where `chosen` is 1, whose law knows only `top` / `dimensions`).
    The coordinates, where they are some of many (SubMDS), and the vote's sign are drawn whatever the data. With a
    `bit_epsilon` the client also sends one bit by randomised response (MagRR).
    """

    kind: ClassVar[str] = "votes"
    dimensions: int
    top: int
    chosen: int
    threshold: int
    epsilon: float  # of one client's choice
    sample_rate: float
    steps: int
    bit_epsilon: float = 0.0  # of its bit; 0: there is none

    def __post_init__(self) -> None:
        for name in ("dimensions", "top", "chosen", "threshold", "steps"):
            require_count(self, name)
        for name in ("epsilon", "sample_rate"):
            require_positive(self, name)
        if self.bit_epsilon != 0.0:
            require_positive(self, "bit_epsilon")
        if not (self.top < self.dimensions and self.threshold <= self.chosen <= min(self.top, self.unwanted)):
            raise PrivacyError("votes: needs threshold ≤ chosen ≤ top, and as many dimensions besides, to choose from")
        if self.sample_rate > 1:
            raise PrivacyError(f"votes: sample_rate is a share of the clients, got {self.sample_rate}")

    @property
    def unwanted(self) -> int:
        """Coordinates that the client would not vote for."""
        return self.dimensions - self.top

    def words(self) -> str:
        bit = f" and one bit of its own ε of {self.bit_epsilon:g}" if self.bit_epsilon else ""
        return (
            f"{self.steps} sums of votes, each of a secret {self.sample_rate:.3%} of the groups that every "
            f"{NOUNS[self.about]} is in one of; a vote is for {self.chosen} of {self.dimensions} weights, with an ε of "
            f"{self.epsilon:.4g}{bit}"
        )

    def brief(self) -> str:
        bit = f" + {self.bit_epsilon:.4g}" if self.bit_epsilon else ""
        return (
            f"{self.steps} votes of {self.sample_rate:.3%}, {self.chosen} ({self.threshold}) of "
            f"{self.top}/{self.dimensions}, ε {self.epsilon:.4g}{bit} each"
        )

    def counted(self) -> tuple[Event, int]:
        return replace(self, steps=1), self.steps

    def repeated(self, times: int) -> list[Event]:
        return [replace(self, steps=self.steps * times)]

    def joining(self) -> float:
        return self.sample_rate

    def loss(self, interval: float) -> PrivacyLossDistribution:
        from synth.privacy.losses import finite_loss
        from synth.privacy.selection.law import whole_law

        return finite_loss(*whole_law(self), interval)

    def rdp(self, orders: Sequence[int]) -> Floats:
        from synth.privacy.losses import finite_rdp
        from synth.privacy.selection.law import whole_law

        return finite_rdp(*whole_law(self), orders)

    def sampler_error(self) -> float:
        from synth.privacy.selection.law import DRAWING_ERROR

        return DRAWING_ERROR
