"""The account over plans that were chosen in view of earlier results: never below the tight one, and known in closed
form where that exists."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.errors import PrivacyError
from synth.privacy.accounting import ORDERS, compose
from synth.privacy.events import CountNoise, Event, Gaussian, Laplace, SampledGaussian, Unaccounted
from synth.privacy.lifetime import FILTER_ORDERS, compose_adaptively

DELTA = 1e-6
EVENTS = st.lists(
    st.one_of(
        st.builds(SampledGaussian, st.sampled_from([0.01, 0.2]), st.floats(1, 50), st.integers(1, 200)),
        st.builds(Gaussian, st.floats(2, 100)),
        st.builds(Laplace, st.floats(2, 100)),
        st.builds(CountNoise, st.integers(1, 20), st.floats(100, 10_000)),
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=25, deadline=None)
@given(events=EVENTS)
def test_it_is_never_below_the_tight_composition(events: list[Event]) -> None:
    assert compose_adaptively(events, DELTA).epsilon >= compose(events, DELTA).epsilon


@pytest.mark.parametrize("sigma", [1.0, 5.0, 40.0])
@pytest.mark.parametrize("times", [1, 7])
def test_gaussian_noise_in_closed_form(sigma: float, times: int) -> None:
    """α / 2σ² each at order α, turned into ε at a tenth of δ (Canonne, Kamath and Steinke 2020, proposition 12)."""
    share = DELTA / 10
    expected = min(
        times * order / (2 * sigma**2) + math.log1p(-1 / order) - math.log(share * order) / (order - 1)
        for order in FILTER_ORDERS
    )
    spent = compose_adaptively([Gaussian(sigma)] * times, DELTA)
    assert spent.epsilon == pytest.approx(expected, rel=1e-9)
    assert (spent.delta, spent.method) == (DELTA, "rdp-filter")


@pytest.mark.parametrize(
    "event",
    [CountNoise(21, 693.8), SampledGaussian(0.2, 15.53, 15), SampledGaussian(0.02, 1.5, 194)],
)
def test_what_it_costs_over_the_tight_account(event: Event) -> None:
    """Plans of ε = 1: three of them are within 3, as the policy that `node init` writes promises."""
    assert compose([event], DELTA).epsilon <= 1
    assert compose_adaptively([event] * 3, DELTA).epsilon < 2.3
    assert compose_adaptively([event] * 3, DELTA).epsilon < 1.3 * compose([event] * 3, DELTA).epsilon


def test_nothing_costs_nothing_and_no_guarantee_stays_none() -> None:
    assert compose_adaptively([], DELTA).epsilon == 0
    spent = compose_adaptively([Gaussian(5.0), Unaccounted("exact histogram")], DELTA)
    assert (spent.epsilon, spent.method) == (math.inf, "none")
    with pytest.raises(PrivacyError):
        compose_adaptively([Gaussian(5.0)], 0)


def test_the_samplers_error_is_paid_for_here_too() -> None:
    """Ten filters leave a tenth of the sampler's reserve; more draws than it covers make the whole infinite."""
    assert math.isfinite(compose_adaptively([CountNoise(10, 4000.0)], DELTA).epsilon)
    assert compose_adaptively([CountNoise(10, 4000.0)], 1e-290).epsilon == math.inf


def test_every_filter_is_an_order_of_the_accountants() -> None:
    assert set(FILTER_ORDERS) <= set(ORDERS)
