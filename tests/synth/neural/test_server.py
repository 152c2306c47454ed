"""Server optimisers by known answers of Reddi et al. (ICLR 2021), Algorithm 2, and that they are pure."""

from __future__ import annotations

import numpy as np
import pytest

from synth.interface import Arrays
from synth.neural.server import ServerOptimizer, fed_adam, fed_avg, fed_yogi, running_average

WEIGHTS: Arrays = {"a": np.array([1.0, -2.0], np.float32)}
CHANGE: Arrays = {"a": np.array([0.5, 0.0])}
RATE, BETA, BETA2, FLOOR = 0.1, 0.9, 0.99, 1e-3


def test_the_average_is_the_sum_of_weights_and_change() -> None:
    weights, state = fed_avg(WEIGHTS, CHANGE, {})
    np.testing.assert_array_equal(weights["a"], np.array([1.5, -2.0], np.float32))
    assert state == {}


@pytest.mark.parametrize(("name", "sign"), [("adam", 0.0), ("yogi", 1.0)])
def test_two_adaptive_rounds_by_hand(name: str, sign: float) -> None:
    optimizer = {"adam": fed_adam(RATE), "yogi": fed_yogi(RATE)}[name]
    mean, spread, weight = 0.0, FLOOR**2, 1.0
    weights, state = WEIGHTS, {}
    for change in (0.5, -0.25):
        weights, state = optimizer(weights, {"a": np.array([change, 0.0])}, state)
        mean = BETA * mean + (1 - BETA) * change
        if sign:
            spread = spread - (1 - BETA2) * change**2 * np.sign(spread - change**2)
        else:
            spread = BETA2 * spread + (1 - BETA2) * change**2
        weight += RATE * mean / (np.sqrt(spread) + FLOOR)
        assert weights["a"][0] == pytest.approx(weight, rel=1e-6)
        assert weights["a"][1] == -2.0  # nothing changed, nothing moves
        assert weights["a"].dtype == np.float32


@pytest.mark.parametrize("optimizer", [fed_avg, fed_adam(RATE), fed_yogi(RATE)], ids=["avg", "adam", "yogi"])
def test_nothing_given_is_changed_and_the_same_gives_the_same(optimizer: ServerOptimizer) -> None:
    first, state = optimizer(WEIGHTS, CHANGE, {})
    before = {name: array.copy() for name, array in state.items()}
    second, again = (optimizer(first, CHANGE, state)[0] for _ in range(2))
    np.testing.assert_array_equal(second["a"], again["a"])
    np.testing.assert_equal(state, before)
    np.testing.assert_array_equal(WEIGHTS["a"], np.array([1.0, -2.0], np.float32))


def test_the_running_average_forgets_by_its_memory() -> None:
    average = running_average(WEIGHTS, {"a": np.array([3.0, 3.0], np.float32)}, memory=0.75)
    np.testing.assert_allclose(average["a"], [1.5, -0.75])
