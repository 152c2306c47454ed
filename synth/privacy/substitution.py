"""What a release says to somebody who knows that a person is in it, and asks what that person's cells are.

ε is for one person added or removed. A party that holds other columns of the same people knows who is in, and to it
two tables are neighbours that differ in one person's cells elsewhere: every table with such a column changes in two
cells instead of one. It also knows its own share of the noise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from synth.privacy.accounting import compose
from synth.privacy.events import CountNoise

Touched = tuple[CountNoise, int]  # a release, and how many of its tables hold a column that the knower does not


def substitution_epsilon(releases: Iterable[Touched], delta: float, unknown: float) -> float:
    """ε for one person's cells replaced by others; `unknown` is the part of the charged noise that the knower lacks."""
    changed = [replace(e, queries=2 * tables, variance=e.variance * unknown) for e, tables in releases if tables]
    return compose(changed, delta).epsilon
