"""Every synthesizer keeps every promise of synth/interface.py. A new family is tested by adding its settings here."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from synth.encoding.records import Codec, Records
from synth.interface import Sum, Synthesizer
from synth.messages import wire
from synth.privacy.accounting import as_units
from synth.privacy.noise import seeded_source
from synth.programme import costs, programme
from synth.statistics.histograms import StatisticsInquiry
from synth.statistics.mixture_rounds import statistics_inquiry
from synth.synthesizers.registry import FAMILIES, build
from tests.inline import Inline, statistics_of, trained
from tests.small import SCHEMA, plan_of, table

SMALLEST: dict[str, dict[str, Any]] = {
    "autoregressive": {"name": "autoregressive", "steps": 3, "width": 4},
    "autoregressive, pretrained": {
        "name": "autoregressive",
        "steps": 3,
        "width": 4,
        "pretrain": {"share": 0.4, "steps": 4},
    },
    "bayes": {
        "name": "bayes",
        "table_cells": 500,
        "model_size_mb": 0.02,
        "population": 20,
        "survivors": 5,
        "generations": 5,
    },
    "ctgan": {
        "name": "ctgan",
        "rounds": 2,
        "steps_per_round": 2,
        "generator": {"width": 16, "warm_start_steps": 5},
        "discriminator": {"width": 8, "fake_batch": 20},
    },
    "fedstdg": {
        "name": "fedstdg",
        "rounds": 2,
        "steps_per_round": 2,
        "sample_rate": 0.5,
        "width": 4,
        "code_width": 2,
        "own_rows": 8,
        "update": "signds",
        "votes": {"records_per_client": 1, "among": 40, "top": 0.5, "chosen": None, "bit_share": 0.1},
    },
    "findiff": {"name": "findiff", "rounds": 2, "steps_per_round": 2, "width": 8, "draws": 2},
    "gswgan": {
        "name": "gswgan",
        "asks": 2,
        "made_up_rows": 40,
        "loudest": 0.5,
        "codes": 64,
        "width": 8,
        "teaching_steps": 5,
    },
    "marginals": {"name": "marginals"},
    "vertigan": {
        "name": "vertigan",
        "rounds": 2,
        "critic_steps": 2,
        "made_up_rows": 20,
        "codes": 64,
        "width": 8,
        "teaching_steps": 5,
        "sample_rate": 0.5,
    },
    "vae": {"name": "vae", "rounds": 2, "steps_per_round": 2, "width": 8, "code_width": 3},
    "wae": {"name": "wae", "rounds": 2, "steps_per_round": 2, "width": 8, "code_width": 3, "own_rows": 16},
}
PRIVACIES: dict[str, dict[str, Any]] = {"private": {}, "none": {"privacy": "none"}}

everyone = pytest.mark.parametrize("family", sorted(SMALLEST))


def federation(family: str, privacy: str = "private", seed: int = 1, data_seed: int = 0) -> Inline:
    plan = plan_of(SMALLEST[family], **PRIVACIES[privacy])
    codec = Codec(plan.table)
    data = {p.name: codec.encode(table(p.rows, data_seed + n)) for n, p in enumerate(plan.parties)}
    return Inline(plan, data, seed)


@cache
def finished(family: str, privacy: str) -> tuple[Inline, Synthesizer]:
    """Each family trained once, with and without privacy; most tests below only look."""
    world = federation(family, privacy)
    return world, trained(world)


def test_every_family_is_tested_here() -> None:
    assert set(SMALLEST) >= set(FAMILIES)


@everyone
@pytest.mark.parametrize("privacy", PRIVACIES)
def test_a_table_in_the_declared_domain_comes_out(family: str, privacy: str) -> None:
    world, synthesizer = finished(family, privacy)
    codec = Codec(world.plan.table)
    rows = codec.decode(synthesizer.sample(50, seed=3))
    assert len(rows) == 50
    assert list(rows.columns) == [name for name in SCHEMA["columns"] if name != "patient"]
    codec.encode(rows.astype("string"))  # refuses anything outside the schema


@everyone
@pytest.mark.parametrize("privacy", PRIVACIES)
def test_declared_cost_is_charged_cost(family: str, privacy: str) -> None:
    world, synthesizer = finished(family, privacy)
    for party in world.plan.parties:
        declared = StatisticsInquiry(world.plan).whole_cost(party.name) + synthesizer.whole_cost(party.name)
        assert as_units(world.charged[party.name]) == as_units(declared)


@everyone
def test_no_release_is_free_unless_it_ignores_the_data(family: str) -> None:
    """cost == [] means: the answer is the same whatever the rows are."""
    here, there = federation(family, data_seed=0), federation(family, data_seed=100)
    synthesizer = build(here.plan)
    synthesizer.begin(statistics_of(here), 1)
    number = 0
    while (ask := synthesizer.ask(number)) is not None:
        party = here.plan.parties[0].name
        if not synthesizer.cost(ask, party):
            both = [
                synthesizer.answer(ask, party, w.data[party], {}, seeded_source(1, "same"))[0] for w in (here, there)
            ]
            for name in both[0].arrays:
                np.testing.assert_array_equal(both[0].arrays[name], both[1].arrays[name])
        synthesizer.absorb(here.total(synthesizer, ask))
        number += 1
    assert number > 0


@everyone
@pytest.mark.parametrize("privacy", PRIVACIES)
def test_shapes_tell_nothing_about_the_rows(family: str, privacy: str) -> None:
    """A party with two rows answers in the same shapes as one with two hundred."""
    world, synthesizer = finished(family, privacy)
    party = world.plan.parties[0].name
    few = world.data[party].take(np.arange(2))
    for ask, answers in zip(world.asks[1:2], world.answers[1:2], strict=True):
        answer, _ = synthesizer.answer(ask, party, few, {}, seeded_source(5))
        assert {k: (v.shape, v.dtype) for k, v in answer.arrays.items()} == {
            k: (v.shape, v.dtype) for k, v in answers[party].arrays.items()
        }


@everyone
def test_answers_add_up_in_any_order(family: str) -> None:
    """absorb(sum) is all an aggregator needs; no answer's place in the sum matters."""
    tables = []
    for order in (1, -1):
        world = federation(family)
        synthesizer = build(world.plan)
        synthesizer.begin(statistics_of(world), 1)
        ask = synthesizer.ask(0)
        assert ask is not None
        world.total(synthesizer, ask)
        answers = dict(list(world.answers[-1].items())[::order])
        total = Sum.of(answers)
        weights = [a.weight for a in answers.values()]
        assert total.weight == pytest.approx(sum(weights))
        synthesizer.absorb(replace(total, arrays={k: np.round(v, 6) for k, v in total.arrays.items()}))
        tables.append(synthesizer.state())
    for name, array in tables[0].items():
        np.testing.assert_allclose(array, tables[1][name], rtol=1e-4, atol=1e-5)


@everyone
def test_same_seed_same_table_and_another_seed_another(family: str) -> None:
    def rows(seed: int) -> Records:
        world = federation(family, seed=seed)
        return trained(world).sample(40, seed=9)

    first, again, other = rows(1), rows(1), rows(2)
    for name in first.columns:
        np.testing.assert_array_equal(first.columns[name], again.columns[name])
    assert any(not np.array_equal(first.columns[n], other.columns[n], equal_nan=True) for n in first.columns)


@everyone
@pytest.mark.parametrize("privacy", PRIVACIES)
def test_a_restored_synthesizer_draws_the_same_rows(family: str, privacy: str) -> None:
    world, synthesizer = finished(family, privacy)
    restored = build(world.plan)
    restored.restore(synthesizer.state())
    left, right = synthesizer.sample(30, seed=4), restored.sample(30, seed=4)
    for name in left.columns:
        np.testing.assert_array_equal(left.columns[name], right.columns[name])


@everyone
def test_an_ask_is_a_function_of_the_state(family: str) -> None:
    """After a kill the same ask must be sent again, to the last bit, or parties would refuse it."""
    world = federation(family)
    synthesizer = build(world.plan)
    synthesizer.begin(statistics_of(world), 1)
    resumed = build(world.plan)
    resumed.restore(synthesizer.state())
    asks = [each.ask(0) for each in (synthesizer, synthesizer, resumed)]
    assert len({wire.digest(wire.pack_ask(ask)) for ask in asks if ask is not None}) == 1
    assert None not in asks


@everyone
@pytest.mark.parametrize("privacy", PRIVACIES)
def test_conditions_are_honoured(family: str, privacy: str) -> None:
    world, synthesizer = finished(family, privacy)
    rows = Codec(world.plan.table).decode(synthesizer.sample(40, seed=2, where={"died": "yes", "sex": "f"}))
    assert set(rows["died"]) == {"yes"}
    assert set(rows["sex"]) == {"f"}


@everyone
@pytest.mark.parametrize("privacy", PRIVACIES)
def test_as_many_asks_as_declared_each_at_its_planned_cost(family: str, privacy: str) -> None:
    world, synthesizer = finished(family, privacy)
    plan = world.plan
    assert len(world.asks) == programme(plan).asks
    assert synthesizer.ask(plan.family.asks) is None
    for party in plan.parties:
        planned = costs(plan, party.name)
        assert len(planned) == programme(plan).asks
        charged = [statistics_inquiry(plan).cost(world.asks[0], party.name)]
        charged += [synthesizer.cost(ask, party.name) for ask in world.asks[1:]]
        assert charged == planned
