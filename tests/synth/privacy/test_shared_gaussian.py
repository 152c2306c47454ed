"""Noise that parties make between them: the theorem of `shared_gaussian`, held against brute force in small cases."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from torch import nn

from synth.errors import PrivacyError
from synth.privacy.accounting import compose
from synth.privacy.calibration import calibrate_noise_multiplier
from synth.privacy.dpsgd import LATTICE, PrivateGradient, StepPrivacy, lattice_sensitivity
from synth.privacy.events import CountNoise, SampledGaussian, SharedGaussian, from_dict, to_dict
from synth.privacy.noise import seeded_source
from synth.privacy.shared_gaussian import GAP, LEAST_VARIANCE, distance_bound, share_deviation

Floats = NDArray[np.float64]
REACH = 40
OUTCOMES = np.arange(-REACH, REACH + 1)


def summed_masses(deviation: float, parties: int) -> Floats:
    """P(ΣR_p = k) exactly: the law of one rounded Gaussian, convolved."""
    one = np.diff(stats.norm.cdf(np.arange(-REACH, REACH + 2) - 0.5, scale=deviation))
    total = one
    for _ in range(parties - 1):
        total = np.convolve(total, one, mode="same")
    return total


def theorem_masses(deviation: float, parties: int, nodes: int = 32) -> Floats:
    """P(round(G - ΣU_p) = k), the uniforms integrated out."""
    places, weights = np.polynomial.legendre.leggauss(nodes)
    scale, total = deviation * math.sqrt(parties), np.zeros(len(OUTCOMES))
    for chosen in itertools.product(range(nodes), repeat=parties - 1):
        shift = sum(places[i] / 2 for i in chosen)
        weight = math.prod(weights[i] / 2 for i in chosen)
        edges = np.arange(-REACH, REACH + 2) - 0.5 + shift
        total += weight * np.diff(stats.norm.cdf(edges, scale=scale))
    return total


def hockey_stick(upper: Floats, lower: Floats, epsilon: float) -> float:
    return float(np.maximum(upper - math.exp(epsilon) * lower, 0.0).sum())


@pytest.mark.parametrize("parties", [2, 3])
@pytest.mark.parametrize("deviation", [0.25, 0.4, 0.6, 1.0, 2.0])
def test_the_distance_is_within_the_bound(deviation: float, parties: int) -> None:
    distance = np.abs(summed_masses(deviation, parties) - theorem_masses(deviation, parties)).sum() / 2
    assert distance <= distance_bound(deviation**2, parties) + 1e-12


def test_the_bound_is_about_something() -> None:
    """Tiny shares are far from Gaussian, and the bound falls as fast as it says."""
    assert np.abs(summed_masses(0.25, 2) - theorem_masses(0.25, 2)).sum() / 2 > 0.02
    assert distance_bound(0.25**2, 2) > 1
    assert distance_bound(2.0**2, 2) == pytest.approx(2 * math.exp(-(2 * math.pi**2) * 2), rel=1e-6)


@pytest.mark.parametrize("sample_rate", [1.0, 0.3])
@pytest.mark.parametrize(("deviation", "parties"), [(1.0, 2), (1.5, 3), (3.0, 2)])
@pytest.mark.parametrize("shift", [1, 2])
def test_no_more_is_lost_than_to_gaussian_noise(deviation: float, parties: int, shift: int, sample_rate: float) -> None:
    """Every δ(ε) of the sum, by brute force over outcomes, in both directions, against the accountant's own."""
    without = summed_masses(deviation, parties)
    with_row = (1 - sample_rate) * without + sample_rate * np.roll(without, shift)
    gaussian = SampledGaussian(sample_rate, deviation * math.sqrt(parties) / shift, 1).loss(1e-4)
    tau = distance_bound(deviation**2, parties)
    for epsilon in (0.0, 0.2, 0.5, 1.0):
        found = max(hockey_stick(with_row, without, epsilon), hockey_stick(without, with_row, epsilon))
        allowed = gaussian.get_delta_for_epsilon(epsilon)
        assert found <= allowed + (1 + math.exp(epsilon)) * tau + 1e-9
        if deviation == 3.0 and epsilon <= 0.2:
            assert found == pytest.approx(allowed, rel=0.1)  # the Gaussian limit: nothing is given away either


@given(st.floats(0.05, 30), st.integers(2, 1000))
def test_a_share_that_would_not_do_is_refused(deviation: float, parties: int) -> None:
    if deviation**2 < LEAST_VARIANCE * parties**2:
        with pytest.raises(PrivacyError, match="divided"):
            share_deviation(deviation, parties)
    else:
        assert distance_bound(share_deviation(deviation, parties) ** 2, parties) < GAP


def test_what_the_least_share_leaves_is_charged() -> None:
    for parties in (2, 10, 1000):
        assert distance_bound(LEAST_VARIANCE * parties, parties) * 1e12 < GAP  # for as many coordinates as there are


def test_the_price_beside_the_gaussian() -> None:
    """σ at equal (ε, δ), lattice included, and ε of the two events."""
    beside = [CountNoise(15, 900.0)]
    shared = calibrate_noise_multiplier(3.0, 1e-5, 0.2, 20, beside, shares=2)
    alone = calibrate_noise_multiplier(3.0, 1e-5, 0.2, 20, beside)
    assert shared / alone * lattice_sensitivity(20_000) / LATTICE < 1.001
    steps = SampledGaussian(0.05, 1.1, 300), SharedGaussian(0.05, 1.1, 300, 2)
    epsilons = [compose([event], 1e-5).epsilon for event in steps]
    assert epsilons[0] <= epsilons[1] < 1.001 * epsilons[0]


def test_the_event_reads_back_and_counts_its_steps() -> None:
    event = SharedGaussian(0.05, 1.5, 300, 2)
    assert from_dict(to_dict(event)) == event
    assert event.counted() == (SharedGaussian(0.05, 1.5, 1, 2), 300)
    assert event.shared_by() == 2
    assert event.guaranteed
    with pytest.raises(PrivacyError, match="parties"):
        SharedGaussian(0.05, 1.5, 300, 0)


@pytest.mark.parametrize("shares", [1, 2, 4])
def test_shares_add_up_to_the_noise_that_is_charged(shares: int) -> None:
    """Of no rows at all, so that nothing but noise is in the sums."""
    torch.manual_seed(0)
    network = nn.Linear(40, 50)
    privacy = StepPrivacy(0.5, 1.3, 0.1, 10.0, shares)
    made = [PrivateGradient(network, privacy, seeded_source(1, number)) for number in range(shares)]
    total = sum(each.noisy_sum(lambda rows: network(rows).sum(1), torch.zeros(0, 40)) for each in made)
    values = np.asarray(total)
    wanted = 1.3 * lattice_sensitivity(len(values))
    assert values.dtype == np.int64
    assert values.std() == pytest.approx(wanted, rel=0.08)  # 2,050 values: five standard deviations
    assert stats.kstest(values / wanted, "norm").pvalue > 1e-4


def test_a_sum_beyond_its_room_is_cut_before_its_noise() -> None:
    """So the noise is whole even there: neighbours at the edge are told apart no better."""
    from synth.privacy.dpsgd import LARGEST_SUM

    network = nn.Linear(1, 1)
    gradient = PrivateGradient(network, StepPrivacy(1.0, 1.0, 0.1, 10.0, 2), seeded_source(2))
    gradient._clipped = lambda *_: torch.full((2,), 2.0**40, dtype=torch.float64)  # type: ignore[assignment]
    values = gradient.noisy_sum(lambda rows: network(rows).sum(1), torch.zeros(0, 1))
    assert np.all(np.abs(values - LARGEST_SUM) < 20 * LATTICE)
    assert len(set(values.tolist())) == 2
