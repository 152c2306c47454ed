"""What a dataset may lose over its whole life, to plans that are chosen in view of earlier results.

Within a plan the mechanisms and their noise are fixed before the first answer, so any composition theorem holds. Over
the life of a dataset they are not: the next plan, its ε included, is chosen by people who have seen the last table. For
such choices composition by privacy loss distributions is not proven. A Rényi *filter* is (Feldman and Zrnic 2021;
Lécuyer 2021): fix an order and a room for it, admit a mechanism only while the sum of all Rényi losses at that order
stays within the room, and the whole is Rényi private with that room, however the mechanisms were chosen.

No single order suits all mechanisms: where steps on few rows are cheap at low orders, they cost the earth at high ones.
So ten filters stand side by side, each with a tenth of δ, and something is admitted while any of them admits it.
Histories that end inside the room of order α are then (ε, δ/10), for each α, and together (ε, δ). See decision 0011.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

from synth.errors import PrivacyError
from synth.privacy.accounting import Spent, Units, as_units, rdp_epsilon
from synth.privacy.events import Event

FILTER_ORDERS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 64)  # fixed for ever: a filter must not depend on what it filters


def compose_adaptively(events: Iterable[Event], delta: float) -> Spent:
    """The total loss of all events together, whoever chose them and after seeing what."""
    if not 0 < delta < 1:
        raise PrivacyError(f"δ must lie between 0 and 1, got {delta}")
    return _compose(as_units(events), delta)


@lru_cache(maxsize=1024)  # a ledger asks for every run that ended
def _compose(units: Units, delta: float) -> Spent:
    if not all(unit.guaranteed for unit, _ in units):
        return Spent(math.inf, delta, "none")
    epsilon = rdp_epsilon(units, delta / len(FILTER_ORDERS), FILTER_ORDERS) if units else 0.0
    return Spent(epsilon, delta, "rdp-filter")
