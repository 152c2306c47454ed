"""Who adds how much of the noise of a count: the one place where it is divided and added up again.

An event charges the noise that the adversary does not know. Where parties share it, those who are sure to be present
and not in league with the aggregator must add all of it between them; the noise of everybody else comes on top. So a
sum that is opened holds more than was charged, and whoever fits a model to it should know how much more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sized
from math import sqrt
from typing import Protocol

from synth.errors import PrivacyError
from synth.privacy.events import CountNoise, Event, SampledGaussian


class Sharing(Protocol):
    """What a plan says about it."""

    @property
    def parties(self) -> Sized: ...

    @property
    def partition(self) -> str: ...

    @property
    def noisy_parties(self) -> int:
        """Parties whose noise is surely in an opened sum and unknown to the adversary."""

    @property
    def records_per_unit(self) -> int:
        """Cells of a histogram that one unit may be in; so many times the charged noise is in each."""


def share_of(plan: Sharing, event: CountNoise) -> float:
    """The variance one party adds to each count."""
    return _share(plan, event.variance)


def summed_variance(plan: Sharing, event: CountNoise, parties: int | None = None) -> float:
    """The variance in the opened sum of so many parties' answers; None: every party of the plan has answered."""
    return share_of(plan, event) * (len(plan.parties) if parties is None else parties)


def owned_variance(plan: Sharing, event: CountNoise, parties: int | None = None) -> float:
    """The same for a table of columns that one party holds alone: then its own noise is all there is."""
    return event.variance if plan.partition == "columns" else summed_variance(plan, event, parties)


def opened_variances(plan: Sharing, events: Iterable[Event], parties: int, phase: str) -> list[float]:
    """Every variance that the counts of an opened sum have: of tables of one party's columns, and across parties."""
    across = summed_variances(plan, events, parties)
    if plan.partition == "rows":
        return across
    return [*count_variances(events), *(across if phase in ("training", "assessment") else [])]


def summed_variances(plan: Sharing, events: Iterable[Event], parties: int) -> list[float]:
    """The same for those of the events that are counts."""
    return [_share(plan, variance) * parties for variance in count_variances(events)]


def count_variances(events: Iterable[Event]) -> list[float]:
    """The noise that was charged for those of the events that are counts."""
    return [event.variance for event in events if isinstance(event, CountNoise)]


def step_noises(events: Iterable[Event], rows: int, parties: int) -> list[float]:
    """Of those of the events that are training: noise of so many parties in one number of a step, beside what all rows
    in it can do."""
    steps = [event for event in events if isinstance(event, SampledGaussian)]
    return [e.noise_multiplier / (e.sample_rate * rows) * sqrt(parties / e.shared_by()) for e in steps]


def _share(plan: Sharing, variance: float) -> float:
    if plan.noisy_parties < 1:
        raise PrivacyError("nobody is left whose noise is secret; fewer parties may collude, or be lost")
    return variance * plan.records_per_unit / plan.noisy_parties
