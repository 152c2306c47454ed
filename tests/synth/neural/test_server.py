"""Server optimisers by known answers of Reddi et al. (ICLR 2021), Algorithm 2, and that they are pure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from synth.encoding.records import Codec
from synth.interface import Arrays
from synth.neural.server import ServerOptimizer, fed_adam, fed_avg, fed_yogi, running_average
from synth.neural.server_settings import ServerSettings
from synth.privacy.noise import seeded_source
from synth.synthesizers.registry import build
from tests.inline import Inline, statistics_of
from tests.small import plan_of, table

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


@pytest.mark.parametrize("name", ["fedadam", "fedyogi"])
def test_the_first_step_of_the_published_settings(name: str) -> None:
    """β 0.9, β₂ 0.999 and no bias correction: 0.1 / √0.001 = 3.16 rates, whatever the size of the change."""
    rule = ServerSettings.model_validate({"optimizer": name, "learning_rate": 1e-3}).rule()
    weights, _ = rule({"a": np.zeros(2, np.float32)}, {"a": np.array([0.5, -0.01])}, {})
    np.testing.assert_allclose(weights["a"], [3.16e-3, -3.16e-3], rtol=2e-3)


@pytest.mark.parametrize("family", ["vae", "ctgan"])
def test_fedprox_holds_a_party_near_and_without_it_nothing_changes(family: str) -> None:
    """The same noise, the same rows: the larger μ, the shorter the way from the round's first weights; μ = 0 is
    FedAvg to the last bit. The pull comes after the noise, so it also holds back what noise alone does."""

    def moved(server: dict[str, float] | None) -> tuple[float, Arrays]:
        settings: dict[str, Any] = {"name": family, "rounds": 1, "steps_per_round": 12}
        settings |= {"generator": {"warm_start_steps": 0, "width": 8}} if family == "ctgan" else {"exchange": "weights"}
        plan = plan_of(settings | ({"server": server} if server is not None else {}))
        federation = Inline(plan, {p.name: Codec(plan.table).encode(table(p.rows)) for p in plan.parties}, 1)
        synthesizer = build(plan)
        synthesizer.begin(statistics_of(federation), 1)
        ask = synthesizer.ask(0)
        assert ask is not None
        answer, _ = synthesizer.answer(ask, "party-1", federation.data["party-1"], {}, seeded_source(1))
        return float(np.sqrt(sum((array**2).sum() for array in answer.arrays.values()))), answer.arrays

    (free, plain), (none, same), (held, _) = moved(None), moved({"proximal": 0.0}), moved({"proximal": 100.0})
    assert free == none
    for array_name, array in plain.items():
        np.testing.assert_array_equal(array, same[array_name])
    assert held < 0.7 * free
