"""The FinDiff composites on tables whose parts are known."""

from __future__ import annotations

import pandas as pd
import pytest

from synth.metrics.attacks.risk import Attempts
from synth.metrics.fidelity_pairs import associations
from synth.metrics.findiff import omega, omega_columns, omega_rows, pi, pi_without_control
from synth.metrics.utility import FINDIFF_FIVE, Omission, Scores, mean_scores
from synth.schema import Categorical, Continuous, Schema

FOUR = Schema(
    columns={
        "x": Continuous(min=-10, max=10),
        "z": Continuous(min=-10, max=10),
        "g": Categorical(categories=["u", "v"]),
        "h": Categorical(categories=["s", "t"]),
    }
)
TOGETHER = pd.DataFrame({"x": [1.0, 1.0, 3.0, 3.0], "z": [2.0, 2.0, 6.0, 6.0], "g": list("uuvv"), "h": list("sstt")})
APART = pd.DataFrame({"x": [1.0, 3.0, 1.0, 3.0], "z": [2.0, 2.0, 6.0, 6.0], "g": list("uvvu"), "h": list("sstt")})


def test_omega_of_real_against_itself_is_one() -> None:
    same = associations(TOGETHER, FOUR)
    assert omega(TOGETHER, TOGETHER, FOUR, same, same) == pytest.approx(1.0)


def test_omega_halves_when_columns_fit_and_pairs_do_not() -> None:
    left, right = associations(TOGETHER, FOUR), associations(APART, FOUR)
    assert omega_columns(TOGETHER, APART, FOUR) == pytest.approx(1.0)
    # One numeric pair and two ordered discrete ones, all from 1 to 0.
    assert omega_rows(left, right) == pytest.approx(0.0, abs=1e-9)
    assert omega(TOGETHER, APART, FOUR, left, right) == pytest.approx(0.5)


def test_phi_is_the_mean_accuracy_of_five_classifiers() -> None:
    scores: dict[str, Scores | Omission] = {
        name: Scores(accuracy=0.1 * k, auroc=0.0, auprc=0.0, f1=0.0) for k, name in enumerate(FINDIFF_FIVE)
    }
    mean = mean_scores(scores, FINDIFF_FIVE)
    assert isinstance(mean, Scores)
    assert mean.accuracy == pytest.approx(0.2)
    assert mean_scores(scores | {"mlp": Omission("one class")}, FINDIFF_FIVE) == Omission("one class")


def test_pi_is_the_mean_of_three_risks() -> None:
    none, full = Attempts(10_000, 0, 0, 10_000, 0), Attempts(10_000, 10_000, 0, 10_000, 0)
    assert pi(full, full, {"a": full, "b": none}).value == pytest.approx((1 + 1 + 0.5) / 3, abs=1e-3)
    assert pi(none, none, {"a": none}).value == pytest.approx(0.0, abs=1e-3)
    excused = Attempts(10_000, 5_000, 0, 10_000, 5_000)  # right about strangers, too
    assert pi(excused, excused, {"a": excused}).value == pytest.approx(0.0, abs=1e-3)
    assert pi_without_control(excused, excused, {"a": excused}).value == pytest.approx(0.5, abs=1e-3)
