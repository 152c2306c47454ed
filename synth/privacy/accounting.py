"""One composition for everything a party released: events in, (ε, δ) out.

dp-accounting is the accountant of record. Privacy loss distributions (PLD) are tight and are used wherever their
support is small enough to hold; Rényi DP (RDP) holds everywhere, costs milliseconds and takes over where the loss
is so large that precision no longer matters. Both are upper bounds, so the smaller one is the answer. Every event
knows its own loss (see `events`); what is not an event is an error, never zero, and an event without a guarantee makes
the whole composition infinite.

δ also pays for the sampler: a Skellam draw is not quite Skellam, by its `sampler_error`. A thousandth of δ is reserved
for it; a composition where it would not suffice is infinite.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
from dp_accounting.rdp import compute_epsilon
from scipy.optimize import brentq

from synth.errors import PrivacyError
from synth.privacy.events import Event

_SAMPLER_SHARE_OF_DELTA = 1e-3
_LARGEST_PLD_EPSILON = 200.0
_LEAST_DELTA, _PRECISION = 1e-300, 1e-12
ORDERS = (*range(2, 65), 96, 128, 256, 512, 1024)  # whole Rényi orders: fast and stable at every noise level

Units: TypeAlias = tuple[tuple[Event, int], ...]  # a release of one query or one step, and how often it happened


@dataclass(frozen=True)
class Spent:
    """ε at δ for one row, person or step at one party; `method` is the accountant that gave it ("none": no promise)."""

    epsilon: float
    delta: float
    method: Literal["pld", "rdp", "rdp-filter", "none"]  # "rdp-filter": over plans chosen adaptively, see `lifetime`


def compose(events: Iterable[Event], delta: float, coarsening: float = 1) -> Spent:
    """The total loss of all events together, whatever is asked of the rows in view of earlier answers. The events
    themselves must be fixed beforehand, as a plan fixes them; over plans that were chosen later see `lifetime`.

    `coarsening` above 1 gives a faster, slightly larger bound (a wider grid of losses), for searches.
    """
    if not 0 < delta < 1:
        raise PrivacyError(f"δ must lie between 0 and 1, got {delta}")
    return _compose(as_units(events), delta, coarsening)


def as_units(events: Iterable[Event]) -> Units:
    """Equal releases counted together, in a fixed order: rounds of one run are one long composition."""
    counts: Counter[Event] = Counter()
    for event in events:
        if not isinstance(event, Event):
            raise PrivacyError(f"no accountant for {type(event).__name__}; refusing to treat it as free")
        unit, times = event.units()
        counts[unit] += times
    if len(neighbours := {(event.unit, event.relation) for event in counts if event.guaranteed}) > 1:
        raise PrivacyError(
            f"releases about different neighbouring tables do not add up: {sorted(neighbours)}; keep a "
            "ledger for each, under another dataset's name"
        )
    return tuple(sorted(counts.items(), key=repr))


def pld_epsilon(units: Units, delta: float, interval: float) -> float:
    """ε by privacy loss distributions on a grid of that spacing; a coarser grid only gives a larger ε."""
    total, *others = (_composed(unit, times, interval) for unit, times in units)
    for other in others:
        total = total.compose(other)
    return _charge_sampler(units, delta, lambda usable: least_epsilon(total, usable))


def least_epsilon(distribution: Any, delta: float) -> float:
    """The least ε of a privacy loss distribution at δ, from above: what its own `get_epsilon_for_delta` finds by going
    through the losses one by one, which takes seconds where they are millions."""

    def excess(epsilon: float) -> float:
        return math.log(max(float(distribution.get_delta_for_epsilon(epsilon)), _LEAST_DELTA) / delta)

    if excess(math.inf) > 0:
        return math.inf
    if excess(0.0) <= 0:
        return 0.0
    ceiling = 1.0
    while excess(ceiling) > 0:
        ceiling *= 2
    found = float(brentq(excess, 0.0, ceiling, xtol=_PRECISION, rtol=_PRECISION))
    while excess(found) > 0:
        found += _PRECISION * max(found, 1.0)
    return found


def rdp_epsilon(units: Units, delta: float, orders: tuple[int, ...] = ORDERS) -> float:
    """ε by Rényi differential privacy, at the best of these orders."""
    rdp = np.sum([times * unit.rdp(orders) for unit, times in units], axis=0)
    return _charge_sampler(units, delta, lambda usable: float(compute_epsilon(orders, rdp, usable)[0]))


def _loss_interval(epsilon: float) -> float:
    """The grid spacing at which a total of about ε is accurate to a few parts in ten thousand."""
    return 1e-5 if epsilon < 0.5 else 1e-4 if epsilon < 10 else 1e-3


@lru_cache(maxsize=256)
def _compose(units: Units, delta: float, coarsening: float) -> Spent:
    if not all(unit.guaranteed for unit, _ in units):
        return Spent(math.inf, delta, "none")
    if not units:
        return Spent(0.0, delta, "pld")
    by_rdp = rdp_epsilon(units, delta)
    if by_rdp > _LARGEST_PLD_EPSILON:
        return Spent(by_rdp, delta, "rdp")
    by_pld = pld_epsilon(units, delta, coarsening * _loss_interval(by_rdp))
    return Spent(by_pld, delta, "pld") if by_pld <= by_rdp else Spent(by_rdp, delta, "rdp")


def _charge_sampler(units: Units, delta: float, epsilon_at: Callable[[float], float]) -> float:
    """ε of the mechanism as sampled. Noise within total variation η of ideal costs δ another (1 + e^ε) η."""
    error = sum(times * unit.sampler_error() for unit, times in units)
    if error == 0:
        return epsilon_at(delta)
    reserve = _SAMPLER_SHARE_OF_DELTA * delta
    epsilon = epsilon_at(delta - reserve)
    return epsilon if epsilon <= math.log(reserve / error) - 1 else math.inf


@lru_cache(maxsize=64)
def _composed(unit: Event, times: int, interval: float) -> Any:
    return _distribution(unit, interval).self_compose(times)


@lru_cache(maxsize=64)
def _distribution(unit: Event, interval: float) -> Any:
    return unit.loss(interval)
