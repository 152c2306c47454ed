"""A curve through noisy counts."""

from __future__ import annotations

import numpy as np

from synth.encoding.smoothing import FEWEST, smoothed

SIGMA = 20.0


def test_a_smooth_column_is_known_better_than_by_its_counts() -> None:
    truth = 500 * np.exp(-(((np.arange(80) - 30) / 15) ** 2))
    rng = np.random.default_rng(1)
    noise = [rng.normal(0, SIGMA, 80) for _ in range(20)]
    error = np.mean([np.abs(smoothed(truth + each, SIGMA) - truth).mean() for each in noise])
    assert error < 0.6 * np.abs(noise).mean()  # measured: 0.45; noise that was left as it is would have 1


def test_a_heap_is_no_part_of_the_curve() -> None:
    truth = np.full(60, 200.0)
    truth[25] = 900.0
    found = smoothed(truth + np.random.default_rng(2).normal(0, SIGMA, 60), SIGMA)
    assert abs(found[25] - 900) < 4 * SIGMA
    assert np.abs(found[[23, 24, 26, 27]] - 200).max() < 4 * SIGMA  # hundreds, if the heap were smeared


def test_nothing_is_negative_and_few_cells_have_no_shape() -> None:
    few = np.array([5.0, -3.0, 80.0, 1.0])
    assert len(few) < FEWEST
    np.testing.assert_array_equal(smoothed(few, SIGMA), [5.0, 0.0, 80.0, 1.0])
    assert (smoothed(np.random.default_rng(3).normal(0, SIGMA, 50), SIGMA) >= 0).all()
