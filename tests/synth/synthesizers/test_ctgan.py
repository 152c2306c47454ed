"""The synthesizer as a whole: every variant of the protocol, what restarts change (nothing), what comes out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from synth.encoding.cells import Cells
from synth.encoding.mixtures import Mixture
from synth.encoding.records import Codec, Records
from synth.errors import InputError, PlanError, ProtocolError
from synth.interface import Ask, Sum
from synth.neural.fitting import fit_numbers, raked
from synth.neural.question import SHARES
from synth.neural.synthesizer import NeuralSynthesizer
from synth.plan import Plan, parse_plan
from synth.privacy.events import Unaccounted
from synth.privacy.noise import seeded_source
from synth.statistics.mixture_rounds import statistics_inquiry
from synth.statistics.similarity import combine, party_shares, share_limits, similarity_weights
from synth.synthesizers.ctgan.settings import CtganSettings
from synth.synthesizers.ctgan.synthesizer import ctgan
from tests.inline import Inline
from tests.small import plan_content, plan_of, table

EVERYBODY = ("party-1", "party-2", "party-3")
TINY: dict[str, Any] = {
    "name": "ctgan",
    "rounds": 2,
    "steps_per_round": 2,
    "sample_rate": 0.2,
    "generator": {"warm_start_steps": 2, "width": 16, "noise_width": 8},
    "discriminator": {"fake_batch": 20, "width": 8},
}
OPEN: dict[str, Any] = {"privacy": "none"}


def settings(**changes: Any) -> dict[str, Any]:
    parts = {part: TINY[part] | changes.pop(part, {}) for part in ("generator", "discriminator")}
    return TINY | changes | parts


def world_of(plan: Plan, seed: int = 1) -> Inline:
    codec = Codec(plan.table)
    return Inline(plan, {p.name: codec.encode(table(p.rows, n)) for n, p in enumerate(plan.parties)}, seed)


def begun(world: Inline) -> NeuralSynthesizer:
    """After the statistics; with modes made up, because fitting them takes longer than all the rest."""
    inquiry = statistics_inquiry(world.plan)
    world.drive(inquiry)
    statistics = inquiry.result()
    synthesizer = ctgan(world.plan)
    synthesizer.begin(replace(statistics, mixtures=two_modes(statistics.cells)), world.seed)
    return synthesizer


def two_modes(cells: Cells) -> dict[str, Mixture]:
    mixtures = {}
    for name, scale in cells.scales.items():
        span = scale.highest - scale.lowest
        means = scale.lowest + span * np.array([0.3, 0.7])
        mixtures[name] = Mixture(np.array([0.4, 0.6]), means, np.full(2, span / 5))
    return mixtures


def trained(world: Inline) -> NeuralSynthesizer:
    synthesizer = begun(world)
    world.drive(synthesizer)
    return synthesizer


VARIANTS: dict[str, dict[str, Any]] = {
    "one party": {
        "synthesizer": TINY,
        "parties": 1,
        "secure_sum": {"statistics": "plain", "updates": "plain", "colluders": 0},
    },
    "Fed-TGAN": {"synthesizer": settings(weighting="similarity"), **OPEN},
    "private weights by similarity": {
        "synthesizer": settings(weighting="similarity"),
        "privacy": {"epsilon": 3.0, "delta": 1e-5, "noise": "local"},
    },
    "published protocol": {"synthesizer": settings(noise_multiplier=2.0), "profile": "faithful"},
    "published without privacy": {
        "synthesizer": settings(
            discriminator={"loss": "wasserstein", "pac": 10, "dropout": 0.5, "steps_per_generator_step": 2}
        ),
        "profile": "faithful",
        **OPEN,
    },
    "Wasserstein": {"synthesizer": settings(discriminator={"loss": "wasserstein", "pac": 5}), **OPEN},
    "packed cross-entropy": {"synthesizer": settings(discriminator={"pac": 5}), **OPEN},
    "every candidate kept": {"synthesizer": settings(candidates=1, averaging=0.0), **OPEN},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_gives_rows_of_the_declared_domain(variant: str) -> None:
    synthesizer = trained(world_of(plan_of(**VARIANTS[variant])))
    codec = Codec(synthesizer.plan.table)
    rows = codec.decode(synthesizer.sample(30, seed=1))
    assert len(rows) == 30
    codec.encode(rows.astype("string"))
    assert all(np.isfinite(array).all() for array in synthesizer.weights.values())
    assert all(np.isfinite(value) for value in synthesizer.losses().values())


@pytest.mark.parametrize(
    "columns",
    [
        {"x": {"kind": "continuous", "min": 0, "max": 1}, "y": {"kind": "integer", "min": 0, "max": 3}},
        {"died": {"kind": "boolean"}},
        {"died": {"kind": "boolean"}, "x": {"kind": "integer", "min": 0, "max": 3}},
    ],
    ids=["numbers only", "the target only", "target and a number"],
)
def test_any_mixture_of_columns(columns: dict[str, Any]) -> None:
    target = {"target": "died"} if "died" in columns else {}
    plan = plan_of(TINY, rows=50, schema={"columns": columns, **target})
    rng = np.random.default_rng(0)
    cells = {"x": rng.integers(0, 2, 50), "y": rng.integers(0, 4, 50), "died": rng.choice(["True", "False"], 50)}
    frame = pd.DataFrame({name: cells[name].astype(str) for name in columns})
    world = Inline(plan, {party.name: Codec(plan.table).encode(frame) for party in plan.parties}, 1)
    assert len(trained(world).sample(11, seed=0)) == 11


# ── protocol ──


def test_a_restarted_party_answers_as_if_nothing_had_happened() -> None:
    world = world_of(plan_of(TINY))
    trained(world)
    first, second = world.asks[-2:]
    party, data = "party-1", world.data["party-1"]
    before, local = ctgan(world.plan).answer(first, party, data, {}, seeded_source(1, party, 1))
    again, _ = ctgan(world.plan).answer(second, party, data, local, seeded_source(1, party, 2))
    np.testing.assert_equal(before.arrays, world.answers[-2][party].arrays)
    np.testing.assert_equal(again.arrays, world.answers[-1][party].arrays)


def test_adam_and_modes_stay_with_the_party() -> None:
    world = world_of(plan_of(TINY))
    trained(world)
    assert "encoding_seed" in world.local["party-1"]
    assert any(name.endswith("exp_avg_sq") for name in world.local["party-1"])
    for answer in world.answers[-1].values():
        assert {name.split("/")[0] for name in answer.arrays} == {"generator", "discriminator"}


def test_averaging_identical_models_is_the_identity() -> None:
    synthesizer = begun(world_of(plan_of(TINY)))
    before = synthesizer.weights
    synthesizer.absorb(Sum({name: np.zeros_like(array) for name, array in before.items()}, 1.0, EVERYBODY))
    np.testing.assert_equal(synthesizer.weights, before)


def test_parties_count_by_their_declared_rows() -> None:
    synthesizer = begun(world_of(plan_of(TINY)))
    before = synthesizer.weights
    changes = {name: np.full_like(array, 0.25 * 1.0 + 0.75 * 3.0) for name, array in before.items()}
    synthesizer.absorb(Sum(changes, 1.0, EVERYBODY))
    for name, array in before.items():
        np.testing.assert_allclose(synthesizer.weights[name], array + 2.5, rtol=1e-6)


@pytest.mark.parametrize("wrong", ["weight", "names"])
def test_sums_that_do_not_fit_are_refused(wrong: str) -> None:
    synthesizer = begun(world_of(plan_of(TINY)))
    fit = {name: np.zeros_like(array) for name, array in synthesizer.weights.items()}
    sums = {"weight": Sum(fit, 0.0, EVERYBODY), "names": Sum({}, 1.0, EVERYBODY)}
    with pytest.raises(ProtocolError):
        synthesizer.absorb(sums[wrong])


def test_an_ask_without_its_weights_is_refused() -> None:
    world = world_of(plan_of(TINY))
    ask = begun(world).ask(0)
    assert ask is not None
    arrays = {name: array for name, array in ask.arrays.items() if name != "discriminator/head.weight"}
    with pytest.raises(ProtocolError, match="same plan"):
        ctgan(world.plan).answer(Ask(arrays, ask.options), "party-1", world.data["party-1"], {}, seeded_source(1))


def test_a_party_out_of_nominal_budget_echoes() -> None:
    plan = plan_of(settings(noise_multiplier=0.2, rounds=2), profile="faithful")
    world = world_of(plan)
    synthesizer = trained(world)
    assert synthesizer.schedule.total_steps < 2
    assert not any(array.any() for array in world.answers[-1]["party-1"].arrays.values())
    assert not any(isinstance(event, Unaccounted) and "weights" in event.what for event in world.charged["party-1"])


def test_the_answer_does_not_depend_on_the_true_number_of_rows_by_its_scale() -> None:
    """A table of twice the declared rows gives about twice the gradient, never a renormalised one."""
    plan = plan_of(TINY)
    assert ctgan(plan).schedule.expected_batch("party-1") == pytest.approx(0.2 * 200)


def test_a_plan_of_another_family_is_refused() -> None:
    with pytest.raises(PlanError, match="not 'ctgan'"):
        ctgan(plan_of({"name": "marginals"}))


# ── settings ──


def test_the_published_preset_fills_in_what_the_plan_leaves_out() -> None:
    given = {"name": "ctgan", "preset": "published", "rounds": 3, "discriminator": {"width": 64}}
    found = CtganSettings.model_validate(given)
    assert (found.rounds, found.discriminator.width) == (3, 64)
    assert (found.discriminator.dropout, found.generator.width, found.generator.warm_start_steps) == (0.5, 256, 0)
    assert CtganSettings.model_validate(found.model_dump()) == found


# ── Fed-TGAN ──


def test_weights_of_the_specifications_example() -> None:
    weights = combine(np.ones((3, 4)), np.array([2.0, 1.0, 1.0]))
    np.testing.assert_allclose(weights, [0.371, 0.314, 0.314], atol=5e-4)


def test_a_party_unlike_the_others_counts_for_less() -> None:
    schema = parse_schema_of({"kind": "categorical", "categories": ["a", "b"]})
    cells = Cells(schema, 8)
    counts = {"one": np.array([90, 10]), "two": np.array([90, 10]), "odd": np.array([10, 90])}
    weights = similarity_weights(cells, counts, 0.0, {"one": 100, "two": 100, "odd": 100})
    assert weights[0] == weights[1] > weights[2]
    assert weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("profile", ["rigorous", "faithful"])
def test_shares_that_would_single_a_party_out_are_refused(profile: str) -> None:
    """With 1, 1e-300, 1e-300 the masked sum of three updates is the first party's update."""
    plan = plan_of(settings(weighting="similarity"), parties=3, profile=profile, **OPEN)
    model = begun(world_of(plan))
    ask = model.ask(0)
    assert ask is not None
    model.read(ask, "party-1")
    wrong = [[1.0, 1e-300, 1e-300], [1.0, 0.0, 0.0], [0.9995, 4e-4, 1e-4], [0.5, 0.5, 0.5]]
    for shares in wrong + ([[0.9, 0.05, 0.05]] if profile == "rigorous" else []):
        with pytest.raises(ProtocolError):
            model.read(replace(ask, arrays=ask.arrays | {SHARES: np.array(shares)}), "party-1")


def test_limited_shares_sum_to_one_and_stay_near_the_rows() -> None:
    """A party of very few rows: the paper's weight is more than four times its share of the rows."""
    content = plan_content(settings(weighting="similarity"), parties=3, **OPEN)
    for party, rows in zip(content["parties"], (10_000, 10_000, 40), strict=True):
        party["rows"] = rows
    plan = parse_plan(content)
    low, high = share_limits(plan)
    paper = {"party-1": 0.35, "party-2": 0.36, "party-3": 0.29}
    for found in (paper, {name: paper[name] for name in ("party-1", "party-3")}):
        shares = party_shares(plan, found)
        assert shares.sum() == pytest.approx(1.0, abs=1e-9)
        assert (low <= shares).all()
        assert (shares <= high).all()
        assert shares[2] == pytest.approx(high[2])
    faithful = parse_plan(content | {"profile": "faithful"})
    np.testing.assert_allclose(party_shares(faithful, paper), list(paper.values()))


def parse_schema_of(column: dict[str, Any]) -> Any:
    return parse_plan(plan_content(TINY, schema={"columns": {"c": column}})).table


# ── drawing ──


def test_raked_weights_have_the_wanted_shares() -> None:
    rng = np.random.default_rng(0)
    labels = {"c": rng.integers(0, 3, 500), "d": rng.integers(0, 2, 500)}
    shares = {"c": np.array([0.7, 0.2, 0.1]), "d": np.array([0.1, 0.9])}
    weights = raked(rng.random(500), labels, shares)
    for column, codes in labels.items():
        np.testing.assert_allclose(np.bincount(codes, weights), shares[column], atol=1e-6)


def test_raking_leaves_out_what_nobody_has() -> None:
    weights = raked(np.ones(4), {"c": np.array([0, 0, 1, 1])}, {"c": np.array([0.2, 0.2, 0.6])})
    np.testing.assert_allclose(weights, 0.25)


def test_numbers_keep_their_order_and_take_the_released_shape() -> None:
    schema = parse_schema_of({"kind": "integer", "min": 0, "max": 9, "missing": True})
    cells, rng = Cells(schema, 16), np.random.default_rng(0)
    values = np.append(rng.normal(5, 1, 999), np.nan)
    wanted = np.append(np.arange(10) / 45, 0.0)
    records = Records({"c": values})
    fitted = fit_numbers(records, records, cells, {"c": wanted}, rng).columns["c"]
    assert np.isnan(fitted[-1])
    order = np.argsort(values[:-1])
    assert (np.diff(fitted[:-1][order]) >= 0).all()
    np.testing.assert_allclose(np.bincount(fitted[:-1].astype(int), minlength=10) / 999, wanted[:-1], atol=0.01)


def test_rows_cannot_be_fixed_by_what_is_not_there() -> None:
    synthesizer = begun(world_of(plan_of(TINY)))
    for where in ({"age": "40"}, {"sex": "x"}, {"nonsense": "1"}):
        with pytest.raises(InputError):
            synthesizer.sample(5, seed=0, where=where)


# ── learning ──


def test_dependencies_are_learnt() -> None:
    """Two coins that always agree. Independent coins, which the warm start teaches, agree in half of the rows."""
    columns = {
        "left": {"kind": "boolean"},
        "right": {"kind": "boolean"},
        "age": {"kind": "integer", "min": 0, "max": 9},
    }
    learning = {
        "rounds": 2,
        "steps_per_round": 60,
        "generator": {"warm_start_steps": 20, "width": 32},
        "discriminator": {"fake_batch": 100, "learning_rate": 5e-3},
        "averaging": 0.0,
        "candidates": 1,
    }
    plan = plan_of(settings(**learning), schema={"columns": columns}, **OPEN)
    rng = np.random.default_rng(0)
    data = {}
    for party in plan.parties:
        coin = rng.choice(["True", "False"], 200)
        frame = pd.DataFrame({"left": coin, "right": coin, "age": rng.integers(0, 10, 200).astype(str)})
        data[party.name] = Codec(plan.table).encode(frame)
    rows = trained(Inline(plan, data, 1)).sample(500, seed=0)
    assert (rows.columns["left"] == rows.columns["right"]).mean() > 0.9
