"""The privacy loss of one release, per kind of noise: as a distribution, and as Rényi divergences.

dp-accounting has no Skellam mechanism. Its loss takes one value per integer outcome, known exactly (see `skellam`);
each such atom is split between the two neighbouring points of the loss grid so that its probability stays the same
under both neighbouring tables (the "connect the dots" rule), which can only overstate the loss.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from dp_accounting import dp_event
from dp_accounting.pld import pld_pmf
from dp_accounting.pld.privacy_loss_distribution import (
    PrivacyLossDistribution,
    from_gaussian_mechanism,
    from_laplace_mechanism,
)
from dp_accounting.rdp import RdpAccountant
from numpy.typing import NDArray
from scipy.special import logsumexp

from synth.privacy.skellam import skellam

Floats: TypeAlias = NDArray[np.float64]

MAX_PARTIES = 1000  # whose shares of one count's noise `skellam_sampler_error` covers
_NEGLIGIBLE = 1e-30  # probability moved to an infinite loss


def gaussian_loss(noise_multiplier: float, sample_rate: float, interval: float) -> PrivacyLossDistribution:
    return from_gaussian_mechanism(noise_multiplier, sampling_prob=sample_rate, value_discretization_interval=interval)


def gaussian_rdp(noise_multiplier: float, sample_rate: float, orders: Sequence[int]) -> Floats:
    whole = dp_event.GaussianDpEvent(noise_multiplier)
    return _rdp(whole if sample_rate == 1 else dp_event.PoissonSampledDpEvent(sample_rate, whole), orders)


def laplace_loss(scale: float, interval: float) -> PrivacyLossDistribution:
    return from_laplace_mechanism(scale, value_discretization_interval=interval)


def laplace_rdp(scale: float, orders: Sequence[int]) -> Floats:
    return _rdp(dp_event.LaplaceDpEvent(scale), orders)


def skellam_loss(variance: float, interval: float) -> PrivacyLossDistribution:
    """Skellam noise on a count that differs by 1. Adding and removing mirror each other, so one side is enough."""
    upper, lower = _neighbouring_masses(variance)
    keep = np.cumsum(upper) >= _NEGLIGIBLE  # outcomes come in order of decreasing loss
    infinite = float(upper[~keep].sum()) + _NEGLIGIBLE
    losses, upper = np.log(upper[keep] / lower[keep]), upper[keep]
    # The least losses, as unlikely, count as the next larger: they would make the grid a hundred times as long.
    last = np.flatnonzero(np.cumsum(upper[::-1])[::-1] >= _NEGLIGIBLE)[-1]
    losses[last:] = losses[last]
    return finite_loss(losses, upper, interval, infinite)


def finite_loss(losses: Floats, upper: Floats, interval: float, infinite: float = 0.0) -> PrivacyLossDistribution:
    """Of a law of finitely many losses, its own mirror, from their probabilities under one neighbour."""
    below = np.floor(losses / interval).astype(np.int64)
    # Split p between b and b + h such that p and p e^-loss are both kept.
    to_above = upper * np.expm1(below * interval - losses) / math.expm1(-interval)
    offset = int(below.min())
    masses = np.zeros(int(below.max()) - offset + 2)
    np.add.at(masses, below - offset, upper - to_above)
    np.add.at(masses, below - offset + 1, to_above)
    return PrivacyLossDistribution(pld_pmf.DensePLDPmf(interval, offset, masses, infinite, pessimistic_estimate=True))


def finite_rdp(losses: Floats, upper: Floats, orders: Sequence[int]) -> Floats:
    """Exact Rényi divergences of such a law."""
    there = upper > 0
    logs, losses = np.log(upper[there]), losses[there]
    return np.array([logsumexp(logs + (order - 1) * losses) / (order - 1) for order in orders])


@lru_cache(maxsize=64)
def skellam_rdp(variance: float, orders: tuple[int, ...]) -> Floats:
    """Exact Rényi divergences of one count, ∞ for orders whose sum is not settled inside the table."""
    upper, lower = (np.log(masses) for masses in _neighbouring_masses(variance))
    divergences = []
    for order in orders:
        terms = order * upper + (1 - order) * lower
        peak = terms.max()
        if max(terms[0], terms[-1]) > peak - 50:
            divergences.append(math.inf)
            continue
        divergence = (peak + math.log(np.exp(terms - peak).sum())) / (order - 1)
        divergences.append(max(divergence, order / (2 * variance)))  # never below Gaussian noise of that variance
    return np.array(divergences)


def skellam_sampler_error(variance: float) -> float:
    """Cells that no row of difference touches have the same law on both sides, so one draw of every party counts."""
    return MAX_PARTIES * skellam(variance).sampling_error


def _rdp(event: dp_event.DpEvent, orders: Sequence[int]) -> Floats:
    rdp: Floats = RdpAccountant(orders).compose(event).rdp
    return rdp


def _neighbouring_masses(variance: float) -> tuple[Floats, Floats]:
    """P(X = k) and P(X + 1 = k) for every k of the table, in order of decreasing log ratio (increasing k)."""
    table = skellam(variance)
    half = table.magnitudes[table.magnitudes > np.finfo(np.float64).tiny]
    masses = np.concatenate([half[::-1], [table.zero], half])
    return masses[1:], masses[:-1]
