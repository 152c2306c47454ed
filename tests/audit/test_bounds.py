"""Known answers, and the bounds' own promise: seldom above the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from synth.audit.bounds import (
    Errors,
    detectable,
    epsilon_of_guesses,
    epsilon_of_mu,
    epsilon_of_rates,
    mu_of_rates,
    rate_at_least,
    rate_at_most,
)


def test_clopper_pearson_as_tabulated() -> None:
    assert rate_at_most(0, 100, 0.95) == pytest.approx(1 - 0.05**0.01)
    assert rate_at_most(10, 100, 0.975) == pytest.approx(0.17622, abs=1e-4)
    assert rate_at_least(10, 100, 0.975) == pytest.approx(0.04900, abs=1e-4)
    assert rate_at_most(7, 7, 0.95) == 1.0


def test_an_attack_without_errors_proves_what_its_trials_allow() -> None:
    """The rule of three: about log(n / 3.7) at 97.5 % a side."""
    assert detectable(1000, 0.0) == pytest.approx(math.log(1000 / -math.log(0.025)), abs=0.01)
    assert epsilon_of_rates(Errors(500, 1000, 500, 1000), 1e-5) == 0.0


def test_gaussian_rates_give_back_their_mu() -> None:
    errors = round(10**6 * float(norm.cdf(-0.5)))
    assert mu_of_rates(Errors(errors, 10**6, errors, 10**6)) == pytest.approx(1.0, abs=0.01)
    assert epsilon_of_mu(1.0, 1e-5) == pytest.approx(4.377, abs=0.01)  # Gaussian noise of the sensitivity's size


def test_sampled_rates_give_back_their_mu() -> None:
    """Half of the time the row is there and moves a unit of noise by 2."""
    alarms, misses = norm.sf(1.0), 1 - (0.5 * norm.sf(1.0) + 0.5 * norm.sf(-1.0))
    errors = Errors(round(10**6 * alarms), 10**6, round(10**6 * misses), 10**6)
    assert mu_of_rates(errors, sample_rate=0.5) == pytest.approx(2.0, abs=0.02)
    assert math.isinf(mu_of_rates(Errors(10, 10**5, 10, 10**5), sample_rate=0.5))  # it was there more often than half


def test_guesses_prove_what_steinke_et_al_print() -> None:
    """Their example: 100 canaries, all guessed right, ε ≥ 3.49 at δ = 0 (95 %)."""
    assert epsilon_of_guesses(100, 100, 100, 0.0) == pytest.approx(math.log(0.05**0.01 / (1 - 0.05**0.01)), abs=1e-3)
    assert epsilon_of_guesses(100, 100, 100, 1e-5) < epsilon_of_guesses(100, 100, 100, 0.0)
    assert epsilon_of_guesses(50, 100, 100, 0.0) == pytest.approx(0.0, abs=1e-3)
    assert epsilon_of_guesses(0, 0, 100, 0.0) == 0.0


@given(st.integers(0, 200), st.integers(1, 200), st.floats(0, 0.1))
def test_bounds_are_numbers_and_never_negative(right: int, guesses: int, delta: float) -> None:
    right = min(right, guesses)
    assert 0 <= epsilon_of_guesses(right, guesses, guesses, delta) < 50
    assert 0 <= epsilon_of_rates(Errors(right, guesses, right, guesses), delta) < math.inf


def test_bounds_are_seldom_above_the_truth() -> None:
    """400 audits of Gaussian noise with μ = 1: each bound may be wrong in 5 % of them, 20. More than 35 would happen to
    an honest bound once in a thousand times."""
    rng, runs = np.random.default_rng(1), 500
    alarms, misses = (rng.binomial(runs, float(norm.cdf(-0.5)), 400) for _ in range(2))
    errors = [Errors(int(a), runs, int(m), runs) for a, m in zip(alarms, misses, strict=True)]
    truth = epsilon_of_mu(1.0, 1e-5)
    assert sum(mu_of_rates(each) > 1.0 for each in errors) <= 35
    assert sum(epsilon_of_rates(each, 1e-5) > truth for each in errors) <= 35
