"""What every event says of itself: whose privacy it is about, its words for people, how it adds up in a ledger, and its
loss for the accountant. The kinds are in `events`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from synth.units import NOUNS, RELATIONS, Unit

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    from synth.privacy.losses import Floats


@dataclass(frozen=True)
class Event(ABC):
    """One release. Parties hold disjoint rows, so the claim for the whole federation is the largest claim of any party,
    not a sum. Where a row is mentioned, it is whatever the release is `about`: a row, a person, a step."""

    kind: ClassVar[str]
    guaranteed: ClassVar[bool] = True  # whether any ε can be proven for it
    about: Unit = field(default="row", kw_only=True)

    @property
    def unit(self) -> str:
        """Whose presence the release hides."""
        return f"one {NOUNS[self.about]} at one party"

    @property
    def relation(self) -> str:
        """How neighbouring tables differ in that unit."""
        return RELATIONS[self.about]

    @abstractmethod
    def words(self) -> str:
        """For the person who approves it."""

    @abstractmethod
    def brief(self) -> str:
        """For a line of the ledger's table."""

    def counted(self) -> tuple[Event, int]:
        """What a ledger counts, and how often it is here: releases that add up, whatever the asks they are spread
        over, are counted one by one."""
        return self, 1

    def repeated(self, times: int) -> list[Event]:
        """The shortest list of events that a ledger counts as `times` times this one."""
        return [self] * times

    def units(self) -> tuple[Event, int]:
        """What the accountant composes with itself, and how often: a release of one query or of one step."""
        return self.counted()

    def joining(self) -> float:
        """The probability with which a row takes part at all."""
        return 1.0

    def shared_by(self) -> int:
        """How many parties make the noise of a step between them."""
        return 1

    @abstractmethod
    def loss(self, interval: float) -> PrivacyLossDistribution:
        """The privacy loss of one unit, on a grid of that spacing, rounded up."""

    @abstractmethod
    def rdp(self, orders: Sequence[int]) -> Floats:
        """The Rényi divergences of one unit at these orders."""

    def sampler_error(self) -> float:
        """Total variation between the noise of one unit as drawn and as accounted for."""
        return 0.0
