"""One composition for everything a party released: events in, (ε, δ) out.

dp-accounting is the accountant of record. Privacy loss distributions (PLD) are tight and are used wherever their
support is small enough to hold; Rényi DP (RDP) holds everywhere, costs milliseconds and takes over where the loss
is so large that precision no longer matters. Both are upper bounds, so the smaller one is the answer. An event
that nobody knows how to account for is an error, never zero, and `Unaccounted` makes the whole composition
infinite.

dp-accounting has no Skellam mechanism. Its loss takes one value per integer outcome, known exactly (see `skellam`);
each such atom is split between the two neighbouring points of the loss grid so that its probability stays the same
under both neighbouring tables (the "connect the dots" rule), which can only overstate the loss.

δ also pays for the sampler: a Skellam draw is not quite Skellam, by `sampling_error`. A thousandth of δ is reserved
for it; a composition where it would not suffice is infinite.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
from dp_accounting import dp_event
from dp_accounting.pld import pld_pmf, privacy_loss_distribution
from dp_accounting.rdp import RdpAccountant, compute_epsilon
from numpy.typing import NDArray

from synth.errors import PrivacyError
from synth.privacy.events import CountNoise, Event, Gaussian, Laplace, SampledGaussian, Unaccounted
from synth.privacy.skellam import skellam

MAX_PARTIES = 1000  # whose shares of one count's noise the reserve below covers
_SAMPLER_SHARE_OF_DELTA = 1e-3
_LARGEST_PLD_EPSILON = 200.0
ORDERS = (*range(2, 65), 96, 128, 256, 512, 1024)  # whole Rényi orders: fast and stable at every noise level
_NEGLIGIBLE = 1e-30  # probability moved to an infinite loss

Units: TypeAlias = tuple[tuple[Event, int], ...]  # a release of one query or one step, and how often it happened


@dataclass(frozen=True)
class Spent:
    """ε at δ for one row at one party; `method` is the accountant that gave it ("none": no guarantee)."""

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
        match event:
            case CountNoise(queries, variance):
                counts[CountNoise(1, variance)] += queries
            case SampledGaussian(sample_rate, noise_multiplier, steps):
                counts[SampledGaussian(sample_rate, noise_multiplier, 1)] += steps
            case Gaussian() | Laplace() | Unaccounted():
                counts[event] += 1
            case _:
                raise PrivacyError(f"no accountant for {type(event).__name__}; refusing to treat it as free")
    return tuple(sorted(counts.items(), key=repr))


def pld_epsilon(units: Units, delta: float, interval: float) -> float:
    """ε by privacy loss distributions on a grid of that spacing; a coarser grid only gives a larger ε."""
    total, *others = (_composed(unit, times, interval) for unit, times in units)
    for other in others:
        total = total.compose(other)
    return _charge_sampler(units, delta, lambda usable: float(total.get_epsilon_for_delta(usable)))


def rdp_epsilon(units: Units, delta: float, orders: tuple[int, ...] = ORDERS) -> float:
    """ε by Rényi differential privacy, at the best of these orders (each one of `ORDERS`)."""
    accountant = RdpAccountant(orders)
    skellam_rdp = np.zeros(len(orders))
    places = [ORDERS.index(order) for order in orders]
    for unit, times in units:
        if isinstance(unit, CountNoise):
            skellam_rdp += times * _skellam_rdp(unit.variance)[places]
        else:
            accountant.compose(_dp_event(unit), times)
    rdp = accountant.rdp + skellam_rdp
    return _charge_sampler(units, delta, lambda usable: float(compute_epsilon(orders, rdp, usable)[0]))


def _loss_interval(epsilon: float) -> float:
    """The grid spacing at which a total of about ε is accurate to a few parts in ten thousand."""
    return 1e-5 if epsilon < 0.5 else 1e-4 if epsilon < 10 else 1e-3


@lru_cache(maxsize=256)
def _compose(units: Units, delta: float, coarsening: float) -> Spent:
    if any(isinstance(unit, Unaccounted) for unit, _ in units):
        return Spent(math.inf, delta, "none")
    if not units:
        return Spent(0.0, delta, "pld")
    by_rdp = rdp_epsilon(units, delta)
    if by_rdp > _LARGEST_PLD_EPSILON:
        return Spent(by_rdp, delta, "rdp")
    by_pld = pld_epsilon(units, delta, coarsening * _loss_interval(by_rdp))
    return Spent(by_pld, delta, "pld") if by_pld <= by_rdp else Spent(by_rdp, delta, "rdp")


def _charge_sampler(units: Units, delta: float, epsilon_at: Callable[[float], float]) -> float:
    """ε of the mechanism as sampled. Noise within total variation η of ideal costs δ another (1 + e^ε) η.

    Cells that no row of difference touches have the same law on both sides, so η counts `queries` draws only.
    """
    error = sum(
        times * MAX_PARTIES * skellam(unit.variance).sampling_error
        for unit, times in units
        if isinstance(unit, CountNoise)
    )
    if error == 0:
        return epsilon_at(delta)
    reserve = _SAMPLER_SHARE_OF_DELTA * delta
    epsilon = epsilon_at(delta - reserve)
    return epsilon if epsilon <= math.log(reserve / error) - 1 else math.inf


def _dp_event(unit: Event) -> dp_event.DpEvent:
    match unit:
        case SampledGaussian(sample_rate, noise_multiplier):
            return dp_event.PoissonSampledDpEvent(sample_rate, dp_event.GaussianDpEvent(noise_multiplier))
        case Gaussian(noise_multiplier):
            return dp_event.GaussianDpEvent(noise_multiplier)
        case Laplace(scale):
            return dp_event.LaplaceDpEvent(scale)
    raise PrivacyError(f"no accountant for {type(unit).__name__}")


@lru_cache(maxsize=64)
def _composed(unit: Event, times: int, interval: float) -> Any:
    return _distribution(unit, interval).self_compose(times)


@lru_cache(maxsize=64)
def _distribution(unit: Event, interval: float) -> Any:
    """The privacy loss distribution of one query, step or release."""
    match unit:
        case SampledGaussian(sample_rate, noise_multiplier):
            return privacy_loss_distribution.from_gaussian_mechanism(
                noise_multiplier, sampling_prob=sample_rate, value_discretization_interval=interval
            )
        case Gaussian(noise_multiplier):
            return privacy_loss_distribution.from_gaussian_mechanism(
                noise_multiplier, value_discretization_interval=interval
            )
        case Laplace(scale):
            return privacy_loss_distribution.from_laplace_mechanism(scale, value_discretization_interval=interval)
        case CountNoise(_, variance):
            return _skellam_distribution(variance, interval)
    raise PrivacyError(f"no accountant for {type(unit).__name__}")


def _skellam_distribution(variance: float, interval: float) -> Any:
    """Skellam noise on a count that differs by 1. Adding and removing mirror each other, so one side is enough."""
    upper, lower = _neighbouring_masses(variance)
    keep = np.cumsum(upper) >= _NEGLIGIBLE  # outcomes come in order of decreasing loss
    losses = np.log(upper[keep] / lower[keep])
    below = np.floor(losses / interval).astype(np.int64)
    # Split p between b and b + h such that p and p e^-loss are both kept.
    to_above = upper[keep] * np.expm1(below * interval - losses) / math.expm1(-interval)
    offset = int(below.min())
    masses = np.zeros(int(below.max()) - offset + 2)
    np.add.at(masses, below - offset, upper[keep] - to_above)
    np.add.at(masses, below - offset + 1, to_above)
    infinite = float(upper[~keep].sum()) + _NEGLIGIBLE
    return privacy_loss_distribution.PrivacyLossDistribution(
        pld_pmf.DensePLDPmf(interval, offset, masses, infinite, pessimistic_estimate=True)
    )


def _neighbouring_masses(variance: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """P(X = k) and P(X + 1 = k) for every k of the table, in order of decreasing log ratio (increasing k)."""
    table = skellam(variance)
    half = table.magnitudes[table.magnitudes > np.finfo(np.float64).tiny]
    masses = np.concatenate([half[::-1], [table.zero], half])
    return masses[1:], masses[:-1]


@lru_cache(maxsize=64)
def _skellam_rdp(variance: float) -> NDArray[np.float64]:
    """Exact Rényi divergences of one count, ∞ for orders whose sum is not settled inside the table."""
    upper, lower = (np.log(masses) for masses in _neighbouring_masses(variance))
    divergences = []
    for order in ORDERS:
        terms = order * upper + (1 - order) * lower
        peak = terms.max()
        if max(terms[0], terms[-1]) > peak - 50:
            divergences.append(math.inf)
            continue
        divergence = (peak + math.log(np.exp(terms - peak).sum())) / (order - 1)
        divergences.append(max(divergence, order / (2 * variance)))  # never below Gaussian noise of that variance
    return np.array(divergences)
