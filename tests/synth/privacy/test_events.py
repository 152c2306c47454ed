"""An event written by one version must be read back as the same event, or be refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.errors import PrivacyError
from synth.privacy.accounting import compose
from synth.privacy.events import (
    CountNoise,
    Event,
    Gaussian,
    Laplace,
    SampledGaussian,
    Unaccounted,
    Votes,
    from_dict,
    to_dict,
)

positive = st.floats(min_value=1e-6, max_value=1e9)
counts = st.integers(min_value=1, max_value=10**9)
events = st.one_of(
    st.builds(CountNoise, counts, positive, st.just("skellam"), st.sampled_from(["shared", "local"])),
    st.builds(SampledGaussian, st.floats(min_value=1e-9, max_value=1.0), positive, counts),
    st.builds(Gaussian, positive),
    st.builds(Laplace, positive),
    st.builds(Unaccounted, st.text(min_size=1)),
    st.builds(Votes, st.just(100), st.just(10), st.just(2), st.just(1), positive, st.just(0.1), counts, positive),
)


@given(events)
def test_round_trip_through_json_text(event: Event) -> None:
    assert from_dict(json.loads(json.dumps(to_dict(event)))) == event


def test_stored_form_never_changes() -> None:
    """Ledgers outlive versions: these texts are what version 1 wrote."""
    assert to_dict(CountNoise(15, 900.0)) == {
        "kind": "count_noise",
        "queries": 15,
        "variance": 900.0,
        "mechanism": "skellam",
        "trust": "shared",
    }
    assert from_dict(
        {"kind": "sampled_gaussian", "sample_rate": 0.05, "noise_multiplier": 2, "steps": 7}
    ) == SampledGaussian(0.05, 2.0, 7)
    assert from_dict({"kind": "laplace", "scale_over_sensitivity": 1.5}) == Laplace(1.5)
    assert from_dict({"kind": "gaussian", "noise_multiplier": 1.5}) == Gaussian(1.5)
    assert from_dict({"kind": "unaccounted", "what": "x"}) == Unaccounted("x")


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"kind": "exponential"},
        {"kind": ["gaussian"]},
        {"kind": "gaussian"},
        {"kind": "gaussian", "noise_multiplier": 1.0, "note": ""},
        {"kind": "gaussian", "noise_multiplier": 0.0},
        {"kind": "gaussian", "noise_multiplier": float("nan")},
        {"kind": "gaussian", "noise_multiplier": float("inf")},
        {"kind": "gaussian", "noise_multiplier": True},
        {"kind": "gaussian", "noise_multiplier": "1"},
        {"kind": "laplace", "scale_over_sensitivity": -1.0},
        {"kind": "sampled_gaussian", "sample_rate": 1.01, "noise_multiplier": 1.0, "steps": 1},
        {"kind": "sampled_gaussian", "sample_rate": 0.1, "noise_multiplier": 1.0, "steps": 0},
        {"kind": "sampled_gaussian", "sample_rate": 0.1, "noise_multiplier": 1.0, "steps": 1.0},
        {"kind": "count_noise", "queries": True, "variance": 1.0},
        {"kind": "count_noise", "queries": 1, "variance": 1.0, "mechanism": "gaussian"},
        {"kind": "count_noise", "queries": 1, "variance": 1.0, "trust": "none"},
        {"kind": "unaccounted", "what": ""},
    ],
)
def test_anything_else_is_refused(record: dict[str, object]) -> None:
    with pytest.raises(PrivacyError):
        from_dict(record)


@given(events)
def test_every_event_describes_itself(event: Event) -> None:
    """What screens, ledgers and accountants need to know of an event, it says; nobody tells the kinds apart."""
    assert event.words()
    assert event.brief()
    assert (event.relation, event.unit) == ("add or remove", "one row at one party")
    one, times = event.counted()
    assert one.repeated(times) == [event]
    unit, often = event.units()
    assert unit.units() == (unit, 1)
    assert often >= 1


def test_events_about_other_neighbouring_tables_do_not_compose() -> None:
    class ByPatient(Gaussian):
        unit = "all rows of one patient"

    with pytest.raises(PrivacyError, match="do not add up"):
        compose([Gaussian(9.0), ByPatient(9.0)], 1e-5)
