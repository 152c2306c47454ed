"""Intervals and residual risks by hand."""

from __future__ import annotations

import pytest

from synth.metrics.attacks.risk import Attempts, exceeds, wilson


def test_wilson_matches_the_textbook() -> None:
    rate = wilson(10, 100)
    assert [rate.low, rate.high] == pytest.approx([0.0552, 0.1744], abs=1e-4)
    assert wilson(0, 50).low == 0.0
    assert wilson(50, 50).high == pytest.approx(1.0)


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


def test_flags_need_three_standard_errors() -> None:
    # pooled 0.11, error sqrt(0.11 * 0.89 * 2/1000) = 0.0140: 0.04 apart is under three errors, 0.06 is not.
    assert not exceeds(130, 1000, 90, 1000)
    assert exceeds(140, 1000, 80, 1000)
    assert not exceeds(1, 10, 0, 10_000)
