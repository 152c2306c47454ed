"""What a release says to somebody who knows that a person is in it, and asks what that person's cells are.

ε is for one person added or removed. A party that holds other columns of the same people knows who is in, and to it
two tables are neighbours that differ in one person's cells elsewhere: every table with such a column changes in two
cells instead of one. It also knows its own share of the noise. Where parties also train on samples of their rows, such
neighbours are two steps apart, one person removed and one added, and group privacy bounds what two steps show.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import exp

from synth.privacy.accounting import compose
from synth.privacy.events import CountNoise, Event, SampledGaussian

Touched = tuple[CountNoise, int]  # a release, and how many of its tables hold a column that the knower does not


def substitution_epsilon(releases: Iterable[Touched], delta: float, unknown: float) -> float:
    """ε for one person's cells replaced by others; `unknown` is the part of the charged noise that the knower lacks."""
    changed = [replace(e, queries=2 * tables, variance=e.variance * unknown) for e, tables in releases if tables]
    return compose(changed, delta).epsilon


def sampled_steps(events: Iterable[Event]) -> list[Event]:
    """Those of the events that are training on samples of rows."""
    return [event for event in events if isinstance(event, SampledGaussian)]


def two_steps_epsilon(events: list[Event], delta: float) -> float:
    """ε for two neighbours of neighbours: 2 ε' at a δ' with (1 + e^ε') δ' ≤ δ (Dwork and Roth 2014, group privacy)."""
    smaller = delta / 2
    while True:
        found = compose(events, smaller).epsilon
        if (1 + exp(min(found, 700.0))) * smaller <= delta:
            return 2 * found
        smaller /= 4
