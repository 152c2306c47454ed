"""Two accountants that share no code must agree; composition must be one composition, however it was spent."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian
from hypothesis import given, settings
from hypothesis import strategies as st
from opacus.accountants import PRVAccountant
from scipy import stats

from synth.errors import PrivacyError
from synth.privacy.accounting import as_units, compose, least_epsilon, pld_epsilon, rdp_epsilon
from synth.privacy.events import CountNoise, Event, Gaussian, Laplace, SampledGaussian, Unaccounted
from synth.privacy.losses import skellam_loss

DELTA = 1e-5


@pytest.mark.filterwarnings("ignore:Optimal order is the largest alpha")  # Opacus' own search, which starts from RDP
@pytest.mark.parametrize(
    ("sample_rate", "noise_multiplier", "steps"), [(0.05, 2.96, 1500), (0.01, 1.2, 5000), (0.2, 8.0, 300)]
)
def test_dp_sgd_agrees_with_opacus_prv_and_stays_below_rdp(
    sample_rate: float, noise_multiplier: float, steps: int
) -> None:
    training = SampledGaussian(sample_rate, noise_multiplier, steps)
    spent = compose([training], DELTA)
    prv = PRVAccountant()
    prv.history = [(noise_multiplier, sample_rate, steps)]
    assert spent.method == "pld"
    assert spent.epsilon == pytest.approx(prv.get_epsilon(delta=DELTA, eps_error=0.002), rel=0.005)
    assert spent.epsilon < rdp_epsilon(as_units([training]), DELTA) < 1.15 * spent.epsilon


def test_the_accountant_is_not_reset_between_rounds() -> None:
    """Thirty rounds of 50 steps are 1,500 steps; a per-round accountant would say a fifth of it."""
    rounds: list[Event] = [SampledGaussian(0.05, 2.96, 50)] * 30
    assert compose(rounds, DELTA) == compose([SampledGaussian(0.05, 2.96, 1500)], DELTA)
    assert compose(rounds, DELTA).epsilon > 4 * compose(rounds[:1], DELTA).epsilon
    gaussians: list[Event] = [Gaussian(10.0)] * 16
    assert compose(gaussians, DELTA).epsilon == pytest.approx(get_epsilon_gaussian(10 / math.sqrt(16), DELTA), rel=1e-3)


@pytest.mark.parametrize("variance", [0.05, 1.0, 25.0, 900.0])
def test_one_noisy_count_is_exact(variance: float) -> None:
    """δ at the reported ε, summed directly over scipy's probabilities, is the δ that was asked for."""
    epsilon = compose([CountNoise(1, variance)], DELTA).epsilon
    reach = int(40 * math.sqrt(variance)) + 40
    outcomes = np.arange(-reach, reach + 1)
    with_row = stats.skellam.pmf(outcomes, variance / 2, variance / 2)
    without = stats.skellam.pmf(outcomes - 1, variance / 2, variance / 2)
    delta = np.maximum(with_row - math.exp(epsilon) * without, 0).sum()
    assert 0.99 * DELTA < delta <= DELTA


@pytest.mark.parametrize(("queries", "variance"), [(15, 290.0), (120, 1937.0), (105, 40.0)])
def test_many_noisy_counts_cost_what_gaussian_noise_would(queries: int, variance: float) -> None:
    """With more than a few counts of noise Skellam is Gaussian for all practical purposes (Agarwal et al. 2021)."""
    counts = CountNoise(queries, variance)
    spent = compose([counts], DELTA)
    assert spent.epsilon == pytest.approx(get_epsilon_gaussian(math.sqrt(variance / queries), DELTA), rel=0.005)
    assert spent.epsilon < rdp_epsilon(as_units([counts]), DELTA) < 1.15 * spent.epsilon


def test_skellam_rdp_is_the_gaussian_one_from_above() -> None:
    units = as_units([CountNoise(20, 500.0)])
    gaussian = as_units([Gaussian(math.sqrt(500.0 / 20))])
    assert rdp_epsilon(gaussian, DELTA) * 0.9999 < rdp_epsilon(units, DELTA) < 1.01 * rdp_epsilon(gaussian, DELTA)


def test_laplace_is_pure() -> None:
    assert compose([Laplace(2.0)], 1e-9).epsilon == pytest.approx(0.5, abs=2e-4)
    assert compose([Laplace(2.0)], 1e-9).epsilon <= 0.5 + 1e-9


def test_trust_and_grouping_do_not_change_the_cost() -> None:
    together = compose([CountNoise(30, 400.0)], DELTA)
    apart = compose([CountNoise(10, 400.0), CountNoise(20, 400.0, trust="local")], DELTA)
    assert together == apart


@settings(max_examples=8, deadline=None)
@given(st.permutations([CountNoise(15, 290.0), SampledGaussian(0.05, 3.0, 500), Gaussian(5.0), Laplace(9.0)]))
def test_order_does_not_matter_and_more_costs_more(events: list[Event]) -> None:
    whole = compose(events, DELTA)
    assert whole == compose(sorted(events, key=repr), DELTA)
    assert compose(events[:-1], DELTA).epsilon < whole.epsilon
    assert compose(events, DELTA / 10).epsilon > whole.epsilon


def test_a_coarser_grid_never_claims_less() -> None:
    units = as_units([CountNoise(15, 290.0), SampledGaussian(0.05, 3.0, 500)])
    fine, middle, coarse = (pld_epsilon(units, DELTA, interval) for interval in (1e-4, 1e-3, 1e-2))
    assert fine <= middle <= coarse


def test_nothing_costs_nothing_and_the_unaccountable_costs_everything() -> None:
    assert compose([], DELTA).epsilon == 0
    spent = compose([Gaussian(100.0), Unaccounted("exact category lists")], DELTA)
    assert spent.epsilon == math.inf
    assert spent.method == "none"


def test_little_noise_is_accounted_by_rdp_not_by_memory() -> None:
    spent = compose([SampledGaussian(0.5, 0.05, 1000)], DELTA)
    assert spent.method == "rdp"
    assert spent.epsilon > 1000


def test_a_delta_the_sampler_cannot_resolve_is_infinite() -> None:
    assert compose([CountNoise(15, 290.0)], 1e-9).epsilon < math.inf
    assert compose([CountNoise(15, 290.0)], 1e-80).epsilon == math.inf


@dataclass(frozen=True)
class Homemade:
    kind: ClassVar[str] = "homemade"


def test_an_unknown_event_is_refused() -> None:
    with pytest.raises(PrivacyError, match="Homemade"):
        compose([Homemade()], DELTA)  # type: ignore[list-item]


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-5, float("nan")])
def test_delta_is_a_probability(delta: float) -> None:
    with pytest.raises(PrivacyError, match="δ"):
        compose([Gaussian(1.0)], delta)


@pytest.mark.parametrize("event", [CountNoise(15, 290.0), SampledGaussian(0.05, 2.96, 100), Laplace(0.5)])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.3])
def test_epsilon_is_read_off_as_the_accountant_of_record_does(event: Event, delta: float) -> None:
    unit, times = event.units()
    total = unit.loss(1e-3).self_compose(times)
    assert least_epsilon(total, delta) == pytest.approx(total.get_epsilon_for_delta(delta), abs=1e-9)
    assert total.get_delta_for_epsilon(least_epsilon(total, delta)) <= delta


@pytest.mark.parametrize("variance", [37.3, 378_300.0])
def test_the_grid_of_a_count_reaches_no_farther_than_its_likely_outcomes(variance: float) -> None:
    """Outcomes rarer than 1e-30 have hardly a right digit; with them the grid was a hundred times as long."""
    interval, deviations = 1e-3 / math.sqrt(variance), stats.norm.isf(1e-30)
    points = skellam_loss(variance, interval)._pmf_remove.size
    assert points * interval < 2.2 * deviations / math.sqrt(variance)
