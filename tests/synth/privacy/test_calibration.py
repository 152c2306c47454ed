"""Noise is as small as the budget allows and never smaller; every machine finds the same value."""

import math
import time

import pytest
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian, get_sigma_gaussian

from synth.errors import BudgetError, PrivacyError
from synth.privacy import calibration
from synth.privacy.accounting import compose
from synth.privacy.calibration import (
    calibrate_count_variance,
    calibrate_noise_multiplier,
    steps_affordable,
    variance_for_share,
)
from synth.privacy.events import CountNoise, Event, Gaussian, SampledGaussian, Unaccounted

DELTA = 1e-5


def four_digits(value: float) -> bool:
    return float(f"{value:.3e}") == value


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 10.0, 50.0])
def test_a_split_budget_is_used_up_and_not_exceeded(epsilon: float) -> None:
    counts = CountNoise(15, variance_for_share(epsilon, DELTA, 0.1, queries=15))
    training = SampledGaussian(0.05, calibrate_noise_multiplier(epsilon, DELTA, 0.05, 1500, [counts]), 1500)
    assert 0.995 * epsilon < compose([counts, training], DELTA).epsilon <= epsilon
    share = get_epsilon_gaussian(get_sigma_gaussian(epsilon, DELTA) / math.sqrt(0.1), DELTA)
    assert 0.995 * share < compose([counts], DELTA).epsilon <= share
    assert four_digits(counts.variance)
    assert four_digits(training.noise_multiplier)


def test_the_value_is_the_smallest_of_the_grid() -> None:
    others: list[Event] = [CountNoise(15, 290.0)]
    noise_multiplier = calibrate_noise_multiplier(3.0, DELTA, 0.05, 1500, others)
    below = SampledGaussian(0.05, noise_multiplier - 0.001, 1500)
    assert compose([*others, below], DELTA).epsilon > 3.0
    assert noise_multiplier == 2.96  # what the plan of record computes; a change must be noticed


def test_counts_alone() -> None:
    variance = calibrate_count_variance(1.0, DELTA, queries=105)
    assert 0.995 < compose([CountNoise(105, variance)], DELTA).epsilon <= 1.0
    second = calibrate_count_variance(1.0, DELTA, 105, [CountNoise(15, 10_000.0)])
    assert second > variance


def test_steps_stop_before_the_budget_not_after_the_epoch() -> None:
    """SmartNoise, asked for 0.1, spent 0.8: it checks once per epoch. One more step than this one is too many."""
    spent: list[Event] = [CountNoise(15, 290.0)]
    steps = steps_affordable(3.0, DELTA, 0.05, 3.2, spent, at_most=10_000)
    assert compose([*spent, SampledGaussian(0.05, 3.2, steps)], DELTA).epsilon <= 3.0
    assert compose([*spent, SampledGaussian(0.05, 3.2, steps + 1)], DELTA).epsilon > 3.0
    assert steps_affordable(3.0, DELTA, 0.05, 3.2, spent, at_most=10) == 10
    assert steps_affordable(0.1, DELTA, 0.05, 3.2, spent, at_most=10) == 0
    assert steps_affordable(3.0, DELTA, 0.05, 3.2, [Unaccounted("names")], at_most=10) == 0


def test_a_budget_already_spent_is_an_error() -> None:
    with pytest.raises(BudgetError, match="already cost"):
        calibrate_noise_multiplier(1.0, DELTA, 0.05, 100, [Gaussian(1.0)])
    with pytest.raises(BudgetError, match="already cost"):
        calibrate_count_variance(1.0, DELTA, 15, [Unaccounted("exact lists")])


@pytest.mark.parametrize(("epsilon", "delta", "share"), [(0, 1e-5, 0.1), (-1, 1e-5, 0.1), (1, 0, 0.1), (1, 1, 0.1)])
def test_an_impossible_budget_is_refused(epsilon: float, delta: float, share: float) -> None:
    with pytest.raises(PrivacyError, match="budget"):
        variance_for_share(epsilon, delta, share, 15)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5])
def test_an_impossible_share_is_refused(share: float) -> None:
    with pytest.raises(PrivacyError, match="share"):
        variance_for_share(1.0, DELTA, share, 15)


@pytest.mark.parametrize("queries", [400, 1000, pytest.param(45_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_wide_tables_calibrate(epsilon: float, queries: int) -> None:
    """Every pair of 28 columns are 400 counts, of 301 columns 45,000; the search once jumped over all there is."""
    began = time.process_time()
    variance = calibrate_count_variance(epsilon, DELTA, queries)
    assert time.process_time() - began < 60  # 12 s at most, 3 s for 400 counts, when this was written
    assert 0.99 * epsilon < compose([CountNoise(queries, variance)], DELTA).epsilon <= epsilon
    assert variance == pytest.approx(queries * get_sigma_gaussian(epsilon, DELTA) ** 2, rel=0.1)


def test_wide_tables_after_other_releases() -> None:
    others: list[Event] = [CountNoise(28, variance_for_share(1.0, DELTA, 0.1, queries=28))]
    variance = calibrate_count_variance(1.0, DELTA, 378, others)
    assert 0.99 < compose([*others, CountNoise(378, variance)], DELTA).epsilon <= 1.0


def test_walking_through_infinite_costs_does_not_lengthen_the_step() -> None:
    """A cost that is infinite below 10^6 and affordable only up to some ten times that would once be jumped over."""
    highest = 0

    def cost(index: int) -> float:
        nonlocal highest
        highest = max(highest, index)
        value = calibration._grid_value(index)
        return math.inf if value < 1e6 else 3e6 / value

    found = calibration._least_index(cost, 1.0, 0)
    assert calibration._grid_value(found) == 3e6
    assert calibration._grid_value(highest) < 3e7
