"""Intervals and residual risks by hand."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.stats import binom, hypergeom

from synth.metrics.attacks.risk import FALSE_ALARM, Attempts, Interval, exceeds, outnumbers, wilson, wilson_score
from synth.metrics.evaluation import Risk


def test_wilson_matches_the_textbook() -> None:
    rate = wilson(10, 100)
    assert [rate.low, rate.high] == pytest.approx([0.0552, 0.1744], abs=1e-4)
    assert rate.value == 0.1
    assert (wilson(0, 50).value, wilson(0, 50).low) == (0.0, 0.0)
    assert (wilson(50, 50).value, wilson(50, 50).high) == (1.0, 1.0)
    assert wilson_score(10, 100).value == pytest.approx((10 + 1.9208) / (100 + 3.8415), abs=1e-4)  # Anonymeter's rate


def test_risk_is_what_the_control_set_does_not_explain() -> None:
    attempts = Attempts(10_000, 6_000, 100, 10_000, 2_000)
    assert attempts.risk.value == pytest.approx((0.6 - 0.2) / 0.8, abs=1e-3)
    # errors: attack 0.0096 / 0.8 = 0.0120; control 0.00784 * 0.4 / 0.64 = 0.0049; together 0.01296
    assert attempts.risk.high - attempts.risk.value == pytest.approx(0.01296, abs=2e-4)
    assert attempts.flagged


def test_an_attack_worse_than_its_control_has_no_risk() -> None:
    attempts = Attempts(500, 100, 100, 500, 200)
    assert (attempts.risk.value, attempts.risk.low) == (0.0, 0.0)
    assert not attempts.flagged


def test_without_control_the_risk_is_the_rate_and_nothing_is_flagged() -> None:
    attempts = Attempts(500, 400, 10)
    assert attempts.risk == attempts.rate
    assert not attempts.flagged


def test_flags_need_about_three_standard_errors() -> None:
    # pooled 0.11, error sqrt(0.11 * 0.89 * 2/1000) = 0.0140: 0.04 apart is under three errors, 0.06 is not.
    assert not exceeds(130, 1000, 90, 1000)
    assert exceeds(140, 1000, 80, 1000)
    assert not exceeds(1, 10, 0, 10_000)  # one success is none


@pytest.mark.parametrize(
    ("trials", "null_trials", "rate"),
    [
        (500, 500, 0.1),
        pytest.param(500, 2000, 0.02, marks=pytest.mark.slow),
        (300, 3000, 0.01),
        (500, 30, 0.97),
        (5000, 20, 0.97),
        (100, 100, 0.01),
    ],
)
def test_an_honest_table_is_flagged_at_most_as_often_as_promised(trials: int, null_trials: int, rate: float) -> None:
    """Exactly: the chance of every pair of counts that would be flagged."""
    here, there = np.arange(trials + 1), np.arange(null_trials + 1)
    p_value = hypergeom.sf(here[:, None] - 1, trials + null_trials, here[:, None] + there, trials)
    chance = np.outer(binom.pmf(here, trials, rate), binom.pmf(there, null_trials, rate))
    flagged = p_value < FALSE_ALARM
    assert chance[flagged].sum() <= FALSE_ALARM
    middle = (int(trials * rate), int(null_trials * rate))
    assert exceeds(middle[0], trials, middle[1], null_trials) == flagged[middle]


def test_coins_that_cannot_be_fair() -> None:
    assert outnumbers(10, 0)  # 2^-10 = 0.00098
    assert not outnumbers(9, 0)  # 0.00195
    assert not outnumbers(0, 0)
    assert not outnumbers(55, 45)


def test_an_interval_is_finite_in_every_result() -> None:
    with pytest.raises(ValidationError):
        Risk(metric="copies", value=Interval(float("nan"), 0.0, 1.0))
