"""Steps of gradients that all parties sum: equal to training on all rows together, with noise that they share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from synth.encoding.records import Codec, Records
from synth.errors import PlanError, PrivacyError, ProtocolError
from synth.interface import Sum
from synth.neural.summed import GRADIENT, PartyStep
from synth.neural.synthesizer import NeuralSynthesizer
from synth.plan import parse_plan
from synth.privacy.dpsgd import lattice_sensitivity
from synth.privacy.events import SampledGaussian, SharedGaussian
from synth.synthesizers.registry import FAMILIES, build, settings_of
from tests.contract.test_synthesizers import SMALLEST
from tests.inline import Inline, statistics_of, trained
from tests.small import plan_content, plan_of, table

SMALL: dict[str, Any] = {"name": "autoregressive", "steps": 2, "width": 4}
CTGAN: dict[str, Any] = {
    "name": "ctgan",
    "exchange": "gradients",
    "rounds": 2,
    "steps_per_round": 2,
    "generator": {"width": 8, "warm_start_steps": 2},
    "discriminator": {"width": 4, "fake_batch": 10},
}
PLAIN = {"statistics": "plain", "updates": "plain", "colluders": 0}


def rows_of(plan: Any, count: int) -> Records:
    return Codec(plan.table).encode(table(count, 5))


def begun(world: Inline) -> NeuralSynthesizer:
    synthesizer = build(world.plan)
    assert isinstance(synthesizer, NeuralSynthesizer)
    synthesizer.begin(statistics_of(world), 1)
    return synthesizer


def test_three_parties_train_as_one_would() -> None:
    """Without noise and with every row in every step, how rows are spread over parties changes nothing."""
    settings = SMALL | {"sample_rate": 1.0, "steps": 4}
    three = plan_of(settings, 3, 100, privacy="none")
    one = plan_of(settings, 1, 300, privacy="none", secure_sum=PLAIN)
    rows = rows_of(three, 300)
    split = {party.name: rows.take(slice(100 * n, 100 * n + 100)) for n, party in enumerate(three.parties)}
    left = trained(Inline(three, split, 1)).state()
    right = trained(Inline(one, {"party-1": rows}, 1)).state()
    assert left.keys() == right.keys()
    for name in left:
        np.testing.assert_allclose(left[name], right[name], rtol=1e-3, atol=1e-4)


def takes_part(name: str) -> bool:
    return "exchange" in settings_of(name).model_fields


def by_gradients(name: str) -> dict[str, Any]:
    """Where a family votes by default, its other rule."""
    update = {"update": "average"} if "update" in settings_of(name).model_fields else {}
    return SMALLEST[name] | {"exchange": "gradients"} | update


EVERYONE = [SMALL, *(by_gradients(name) for name in sorted(FAMILIES) if takes_part(name))]


@pytest.mark.parametrize("settings", EVERYONE, ids=lambda settings: settings["name"])
@pytest.mark.parametrize(("noise", "colluders", "shares"), [("shared", 1, 2), ("shared", 0, 3), ("local", 1, 1)])
def test_the_opened_sum_has_the_noise_that_was_charged(
    settings: dict[str, Any], noise: str, colluders: int, shares: int
) -> None:
    """Of parties without rows: what is left if the adversary takes its own noise away is what the event says."""
    privacy = {"epsilon": 3.0, "delta": 1e-5, "noise": noise}
    plan = plan_of(settings, privacy=privacy, secure_sum={"colluders": colluders})
    world = Inline(plan, {party.name: rows_of(plan, 0) for party in plan.parties}, 7)
    synthesizer = begun(world)
    ask = synthesizer.ask(0)
    assert ask is not None
    (event,) = synthesizer.cost(ask, "party-1")
    assert isinstance(event, SharedGaussian if shares > 1 else SampledGaussian)
    assert event.shared_by() == shares
    world.total(synthesizer, ask)
    summands = [answer.arrays[GRADIENT] for answer in world.answers[-1].values()]
    assert all(summand.dtype == np.int64 for summand in summands)
    honest = np.sum(summands[:shares], axis=0)
    assert isinstance(event, SampledGaussian)
    wanted = event.noise_multiplier * lattice_sensitivity(len(honest))
    assert honest.std() == pytest.approx(wanted, rel=5 / np.sqrt(2 * len(honest)))


@pytest.mark.parametrize("settings", [SMALL, CTGAN])
def test_a_run_that_was_stopped_goes_on_bit_by_bit(settings: dict[str, Any]) -> None:
    plan = plan_of(settings)
    data = {party.name: rows_of(plan, 50) for party in plan.parties}
    whole, stopped = Inline(plan, data, 1), Inline(plan, data, 1)
    unbroken, before = begun(whole), begun(stopped)
    whole.drive(unbroken)
    stopped.drive(before, most=1)
    after = build(plan)
    after.restore(before.state())
    for number in range(1, plan.family.asks):
        ask = after.ask(number)
        assert ask is not None
        after.absorb(stopped.total(after, ask))
    np.testing.assert_equal(after.state(), unbroken.state())


def test_a_lost_party_leaves_a_mean_over_the_others() -> None:
    """The divisor is what the parties in the sum declared."""
    plan = plan_of(SMALL | {"sample_rate": 1.0}, 3, 100, privacy="none")
    rows = rows_of(plan, 100)
    world = Inline(plan, {party.name: rows for party in plan.parties}, 1)
    all_three, two = begun(world), build(plan)
    two.restore(all_three.state())
    ask = all_three.ask(0)
    assert ask is not None
    all_three.absorb(world.total(all_three, ask))
    some = dict(list(world.answers[-1].items())[:2])
    two.absorb(Sum.of(some))
    for name, weights in all_three.weights.items():
        np.testing.assert_allclose(two.state()[name], weights, atol=1e-5)


def test_another_sum_is_refused() -> None:
    plan = plan_of(SMALL)
    world = Inline(plan, {party.name: rows_of(plan, 20) for party in plan.parties}, 1)
    synthesizer = begun(world)
    for wrong in ({"counts": np.zeros(3)}, {GRADIENT: np.zeros(3)}):
        with pytest.raises(ProtocolError, match="another version"):
            synthesizer.absorb(Sum(wrong, 1.0, ("party-1", "party-2", "party-3")))


def test_a_step_without_a_private_gradient_is_refused() -> None:
    plan = plan_of(SMALL)
    world = Inline(plan, {party.name: rows_of(plan, 20) for party in plan.parties}, 1)
    synthesizer = begun(world)
    ask = synthesizer.ask(0)
    assert ask is not None
    from synth.privacy.noise import seeded_source

    asked = synthesizer.read(ask, "party-1")
    half = PartyStep(synthesizer.schedule, asked, [], "party-1", seeded_source(1))  # type: ignore[arg-type]
    with pytest.raises(PrivacyError, match="without a gradient"):
        half.summand(lambda streams: None)


def test_exchanging_weights_stays_what_it_was() -> None:
    """The default says nothing in a plan, and what was published exchanges weights."""
    silent, said = ({"name": "ctgan", **extra} for extra in ({}, {"exchange": "weights"}))
    assert plan_of(silent).digest() == plan_of(said).digest()
    assert plan_of(silent).digest() != plan_of({"name": "ctgan", "exchange": "gradients"}).digest()
    assert plan_of({"name": "ctgan"}).family.answers == "updates"
    faithful = plan_of({"name": "ctgan", "exchange": "gradients"}, profile="faithful")
    assert (faithful.family.answers, faithful.family.asks) == ("updates", 20)


@pytest.mark.parametrize(
    ("changes", "privacy"),
    [
        ({"weighting": "similarity"}, {"epsilon": 3.0, "delta": 1e-5, "noise": "local"}),
        ({"server": {"optimizer": "fedadam"}}, {"epsilon": 3.0, "delta": 1e-5}),
        ({"discriminator": {"steps_per_generator_step": 2}}, {"epsilon": 3.0, "delta": 1e-5}),
        ({}, "none"),
    ],
)
def test_what_does_not_go_together_is_refused(changes: dict[str, Any], privacy: Any) -> None:
    with pytest.raises(PlanError, match="exchange"):
        build(parse_plan(plan_content({"name": "ctgan", "exchange": "gradients"} | changes) | {"privacy": privacy}))


@pytest.mark.parametrize("family", ["vae", "findiff"])
def test_families_on_bins_sum_gradients_unless_they_are_told_to_average(family: str) -> None:
    """By default a step is a round with noise that parties share; what was published averages weights."""
    shared, averaged = plan_of({"name": family}), plan_of({"name": family, "exchange": "weights"})
    assert (shared.family.answers, averaged.family.answers) == ("gradients", "updates")
    assert shared.family.asks == 10 * averaged.family.asks
    assert plan_of({"name": family}, profile="faithful").family.answers == "updates"
    with pytest.raises(PlanError, match="exchange"):
        build(plan_of({"name": family, "server": {"optimizer": "fedyogi"}}))
    build(plan_of({"name": family, "exchange": "weights", "server": {"optimizer": "fedyogi", "proximal": 0.01}}))
