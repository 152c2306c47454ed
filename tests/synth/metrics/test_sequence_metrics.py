"""Known answers for sequences, and that the controls show what a figure alone hides."""

from __future__ import annotations

import numpy as np
import pytest

from synth.metrics import sequence_detection, sequence_prediction, sequence_view
from synth.metrics.sequence_detection import measured_detection, recurrent_detection
from synth.metrics.sequence_dynamics import change_ratio, lag_correlation, mean_change, transition_distance
from synth.metrics.sequence_prediction import constant_mae, data_free_walks, persistence_mae, predictive_mae
from synth.metrics.tables import FloatArray


def walks(count: int, step: float, seed: int, steps: int = 8) -> FloatArray:
    rng = np.random.default_rng(seed)
    starts = rng.uniform(0.2, 0.8, (count, 1, 1))
    return np.clip(starts + np.cumsum(rng.normal(0, step, (count, steps, 1)), axis=1), 0, 1)


def test_dynamics_have_the_values_that_can_be_worked_out() -> None:
    line = np.linspace(0, 1, 5)[None, :, None] * np.array([1.0, 0.5, 0.25])[:, None, None]
    assert mean_change(line)[0] == pytest.approx((0.25 + 0.125 + 0.0625) / 3)
    assert lag_correlation(line[:, 1:], 2)[0] == pytest.approx(1.0)
    assert change_ratio(line, line)[0] == pytest.approx(1.0)
    assert change_ratio(line, 2 * line)[0] == pytest.approx(2.0)
    assert change_ratio(np.zeros((3, 4, 1)), np.zeros((3, 4, 1)))[0] == 1.0
    assert transition_distance(line, line) == 0.0
    up, down = np.tile([0.0, 1.0], (50, 3))[:, :, None], np.tile([0.0, 0.0, 1.0], (50, 2))[:, :, None]
    assert transition_distance(up, down) > 0.3
    assert persistence_mae(line) == pytest.approx(float(mean_change(line)[0]))
    assert constant_mae(np.full((2, 3, 1), 0.75)) == pytest.approx(0.25)


def test_a_walk_that_has_seen_no_data_predicts_slow_series_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Why no predictive error stands alone: the control is as good as the data, and a constant is far worse."""
    monkeypatch.setattr(sequence_prediction, "STEPS", 200)
    real, test = walks(300, 0.03, 1), walks(200, 0.03, 2)
    free = predictive_mae(data_free_walks(real), test)
    assert free < 2 * predictive_mae(real, test) + 0.02
    assert free < constant_mae(test)


def test_two_detectors_see_what_one_may_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    smooth, jitter = walks(400, 0.02, 1), walks(400, 0.02, 2)
    jitter = np.clip(jitter + np.random.default_rng(3).normal(0, 0.05, jitter.shape), 0, 1)
    assert measured_detection(smooth, jitter) > 0.35
    assert measured_detection(smooth, walks(400, 0.02, 4)) < 0.15
    monkeypatch.setattr(sequence_detection, "STEPS", 100)
    assert recurrent_detection(smooth, smooth + 0.5) > 0.35


def test_a_view_has_everything_beside_its_control(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequence_prediction, "STEPS", 20)
    monkeypatch.setattr(sequence_detection, "STEPS", 20)
    real, made, held = walks(80, 0.03, 1), walks(60, 0.1, 2), walks(40, 0.03, 3)
    view = sequence_view.sequence_view(["x"], real, made, held)
    assert view is not None
    figures = {each.name: each for each in view.figures}
    assert figures["change_ratio"].value > 2
    assert figures["change_ratio"].real == pytest.approx(1.0, abs=0.2)
    assert set(view.controls) == {"persistence", "data_free", "constant"}
    assert (view.real_sequences, view.synthetic_sequences, view.steps) == (80, 60, 8)
    assert 0.2 < (view.membership_auroc or 0) < 0.8
    copied = sequence_view.sequence_view(["x"], real, real, held)
    assert copied is not None
    assert copied.membership_auroc == 1.0  # copies are members, always
    assert sequence_view.sequence_view(["x"], real[:5], made, None) is None
