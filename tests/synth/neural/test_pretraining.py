"""Pretraining on the plan's own counts: charged like everything else, resumed bit by bit, and nothing but released
numbers in the plain steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fed_node.consent.description import describe
from synth.certificate.certificate import sampling_in_words
from synth.encoding.records import Codec
from synth.errors import PlanError, ProtocolError
from synth.interface import Sum
from synth.neural.pretraining import Pretrained
from synth.plan import Plan
from synth.privacy.accounting import compose
from synth.privacy.events import CountNoise, SampledGaussian
from synth.programme import programme, whole_cost
from synth.synthesizers.registry import build
from tests.inline import Inline, statistics_of, trained
from tests.small import plan_of, table

PLAIN = {"name": "autoregressive", "steps": 2, "width": 4}
SMALL: dict[str, Any] = PLAIN | {"pretrain": {"share": 0.5, "steps": 3}}
AVERAGED: dict[str, Any] = {
    "name": "vae",
    "exchange": "weights",
    "rounds": 2,
    "steps_per_round": 1,
    "width": 4,
    "code_width": 2,
    "pretrain": {"steps": 3},
}


def world_of(plan: Plan, data_seed: int = 0, rows: int = 60) -> Inline:
    codec = Codec(plan.table)
    data = {party.name: codec.encode(table(rows, data_seed + n)) for n, party in enumerate(plan.parties)}
    return Inline(plan, data, 1)


def begun(world: Inline) -> Pretrained:
    synthesizer = build(world.plan)
    assert isinstance(synthesizer, Pretrained)
    synthesizer.begin(statistics_of(world), 1)
    return synthesizer


@pytest.mark.parametrize("share", [0.2, 0.7])
def test_counts_and_steps_together_cost_the_plan_s_epsilon(share: float) -> None:
    plan = plan_of(SMALL | {"pretrain": {"share": share}})
    events = whole_cost(plan, "party-1")
    spent = compose(events, 1e-5).epsilon
    assert 2.95 < spent <= 3.0
    counted = sum(e.queries / e.variance for e in events if isinstance(e, CountNoise))
    assert counted / (counted_alone := _precision(plan_of({"name": "marginals"}))) == pytest.approx(
        0.2 + 0.8 * share, rel=0.05
    )
    assert counted < counted_alone
    assert _step_noise(plan) > _step_noise(plan_of(PLAIN))


def _precision(plan: Plan) -> float:
    return sum(e.queries / e.variance for e in whole_cost(plan, "party-1") if isinstance(e, CountNoise))


def _step_noise(plan: Plan) -> float:
    return next(e.noise_multiplier for e in whole_cost(plan, "party-1") if isinstance(e, SampledGaussian))


@pytest.mark.parametrize("settings", [SMALL, AVERAGED], ids=["gradients", "weights"])
def test_a_run_that_was_stopped_anywhere_goes_on_bit_by_bit(settings: dict[str, Any]) -> None:
    plan = plan_of(settings)
    whole = world_of(plan)
    unbroken = begun(whole)
    whole.drive(unbroken)
    world = world_of(plan)
    going: Any = begun(world)
    for number in range(plan.family.asks):
        resumed = build(plan)
        resumed.restore(going.state())
        ask = resumed.ask(number)
        assert ask is not None
        resumed.absorb(world.total(resumed, ask))
        going = resumed
    np.testing.assert_equal(going.state(), unbroken.state())
    assert going.ask(plan.family.asks) is None


def test_plain_steps_know_nothing_but_what_was_released() -> None:
    """Parties with other rows whose sums happen to be the same leave the same network."""
    plan = plan_of(SMALL)
    one, other = world_of(plan), world_of(plan, data_seed=50)
    statistics = statistics_of(one)
    left, right = build(plan), build(plan)
    for synthesizer in (left, right):
        synthesizer.begin(statistics, 1)
    for number in range(2):
        ask = left.ask(number)
        assert ask is not None
        total = one.total(left, ask)
        other.total(right, ask)
        left.absorb(total)
        right.absorb(total)
    np.testing.assert_equal(left.state(), right.state())


def test_the_network_begins_with_what_the_counts_say() -> None:
    """Two steps teach nothing; dose rising with age comes from the counts."""
    plan = plan_of(PLAIN | {"pretrain": {"steps": 150}, "width": 8}, rows=2000, privacy="none")
    ages, doses = _numbers(plan)
    cold = _numbers(plan_of(PLAIN | {"width": 8}, rows=2000, privacy="none"))
    assert np.corrcoef(ages, doses)[0, 1] > 0.5 > abs(np.corrcoef(*cold)[0, 1]) + 0.2


def _numbers(plan: Plan) -> tuple[Any, Any]:
    rows = trained(world_of(plan, rows=2000)).sample(1500, seed=1).columns
    known = ~np.isnan(rows["dose"])
    return rows["age"][known], rows["dose"][known]


def test_an_ask_is_answered_in_its_place_only() -> None:
    """An aggregator that asks for counts where a step was planned, or the other way round, would be charged the price
    of the other."""
    plan = plan_of(SMALL)
    world = world_of(plan)
    synthesizer = begun(world)
    world.drive(synthesizer)
    counts, step = world.asks[1], world.asks[3]
    assert [type(event) for event in synthesizer.cost(counts, "party-1")] == [CountNoise]
    for ask, number in ((counts, 2), (counts, 3), (step, 0), (step, 1), (counts, -1), (counts, True), (counts, "0")):
        moved = replace(ask, options=ask.options | {"round": number})
        for refuses in (
            lambda moved=moved: synthesizer.cost(moved, "party-1"),
            lambda moved=moved: synthesizer.answer(moved, "party-1", world.data["party-1"], {}, None),  # type: ignore[arg-type]
        ):
            with pytest.raises(ProtocolError):
                refuses()


def test_the_opened_counts_have_the_noise_that_was_charged() -> None:
    """Of parties without rows, two of which are honest."""
    plan = plan_of(SMALL)
    world = world_of(plan, rows=0)
    synthesizer = begun(world)
    ask = synthesizer.ask(0)
    assert ask is not None
    (event,) = synthesizer.cost(ask, "party-1")
    assert isinstance(event, CountNoise)
    world.total(synthesizer, ask)
    honest = np.sum([answer.arrays["counts"] for answer in world.answers[-1].values()][:2], axis=0)
    assert honest.var() == pytest.approx(event.variance, rel=5 * np.sqrt(2 / len(honest)))


def test_people_are_told() -> None:
    plan = plan_of(SMALL)
    assert plan.family.asks == 4
    assert programme(plan).asks == 5
    assert "first counts" in " ".join(describe(plan, "party-1").split())
    assert "Counts that training starts from use all rows." in sampling_in_words(plan)
    assert "Counts that" not in sampling_in_words(plan_of(PLAIN))


def test_plans_without_it_are_what_they_were() -> None:
    assert "pretrain" not in plan_of(PLAIN).model_dump(mode="json")["synthesizer"]
    assert plan_of(PLAIN).digest() != plan_of(SMALL).digest()
    with pytest.raises(PlanError, match="pretrain is not part of anything published"):
        build(plan_of({"name": "vae", "pretrain": {}}, profile="faithful"))


def test_a_sum_of_the_wrong_kind_is_refused() -> None:
    synthesizer = begun(world_of(plan_of(SMALL)))
    with pytest.raises(ProtocolError, match="another version"):
        synthesizer.absorb(Sum({"gradient": np.zeros(3)}, 1.0, ("party-1",)))
