"""The protocol of `bayes`: what is asked, what it costs, what noise the opened sums carry, what rows come out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from synth.encoding import contingency
from synth.encoding.records import Codec, Records
from synth.errors import InputError, PlanError, ProtocolError
from synth.interface import Ask, Sum
from synth.plan import parse_plan
from synth.privacy.accounting import compose
from synth.privacy.events import CountNoise, Unaccounted
from synth.privacy.noise import seeded_source
from synth.privacy.shares import summed_variance
from synth.statistics.histograms import StatisticsInquiry
from synth.synthesizers.bayes.released import ReleasedSearch
from synth.synthesizers.registry import build
from tests.inline import Inline, statistics_of, trained
from tests.small import plan_content, plan_of, table
from tests.synth.synthesizers.opened_noise import check_opened_noise

BAYES: dict[str, Any] = {
    "name": "bayes",
    "table_cells": 1000,
    "model_size_mb": 0.05,
    "population": 20,
    "survivors": 5,
    "generations": 10,
}


DECLARED = 4000  # rows of a party, enough for all pairs to be counted


def federation(rows: int = 1000, seed: int = 1, settings: dict[str, Any] | None = None, **other: Any) -> Inline:
    plan = plan_of(BAYES | (settings or {}), rows=DECLARED, **other)
    codec = Codec(plan.table)
    return Inline(plan, {p.name: codec.encode(table(rows, n)) for n, p in enumerate(plan.parties)}, seed)


def everything(world: Inline) -> Records:
    return Records.concat(list(world.data.values()))


def model_of(world: Inline) -> ReleasedSearch:
    model = trained(world)
    assert isinstance(model, ReleasedSearch)
    return model


@pytest.mark.parametrize("settings", [{}, {"first_share": 0.6, "parents": 1}, {"pairs": 4}])
def test_the_budget_is_spent_and_not_exceeded(settings: dict[str, Any]) -> None:
    plan = federation(10, settings=settings).plan
    assert plan.privacy != "none"
    party = plan.parties[0].name
    events = StatisticsInquiry(plan).whole_cost(party) + build(plan).whole_cost(party)
    spent = compose(events, plan.privacy.delta).epsilon
    assert 0.99 * plan.privacy.epsilon < spent <= plan.privacy.epsilon


@pytest.mark.parametrize("privacy", [{}, {"privacy": "none"}])
def test_declared_cost_is_charged_cost_whatever_the_structure(privacy: dict[str, Any]) -> None:
    for rows in (30, 1000):  # with few rows hardly any column is worth a parent but the target's
        world = federation(rows, **privacy)
        model = model_of(world)
        declared = StatisticsInquiry(world.plan).whole_cost("party-1") + model.whole_cost("party-1")
        assert world.charged["party-1"] == declared
        assert len(model.measured) == 2
        assert len(model.measured[1][0]) == len(model.names) - 1


@pytest.mark.parametrize("trust", ["shared", "local"])
@pytest.mark.parametrize("number", [0, 1])
def test_opened_counts_carry_exactly_the_promised_variance(trust: str, number: int) -> None:
    world = federation(60, parties=4, privacy={"epsilon": 1.0, "delta": 1e-5, "noise": trust})
    model = build(world.plan)
    assert isinstance(model, ReleasedSearch)
    cliques = model.pairs if number == 0 else model.pairs[: model.tables]
    fine = np.concatenate([np.arange(part.stop - part.start) % 20 for part in model.cells.slices.values()])
    check_opened_noise(world.plan, world.data, model, fine, cliques, number, many=number == 0)


def test_tables_of_fewer_parties_speak_for_all_rows_with_the_noise_that_is_in_them() -> None:
    world = federation(400, parties=3, secure_sum={"minimum_parties": 2})
    model = build(world.plan)
    assert isinstance(model, ReleasedSearch)
    model.begin(statistics_of(world), seed=1)
    ask = model.ask(0)
    assert ask is not None
    answers = {p: model.answer(ask, p, rows, {}, seeded_source(1, p))[0] for p, rows in world.data.items()}
    answers.pop("party-3")
    model.absorb(Sum.of(answers))
    event = model.cost(ask, "party-1")[0]
    assert isinstance(event, CountNoise)
    scale = 1 / sum(world.plan.share(name) for name in answers)
    assert model.variances == [pytest.approx(summed_variance(world.plan, event, 2) * scale**2)]
    opened = Sum.of(answers).arrays["counts"]
    np.testing.assert_allclose(model.measured[0][1], opened * scale, atol=0.5)


def test_how_rows_are_spread_over_parties_does_not_matter() -> None:
    """Same rows, same noise: label-skewed parties give the same table as equal ones, to the last cell."""
    world = federation(400)
    rows = everything(world)
    cuts = np.array_split(np.argsort(rows.columns["died"], kind="stable"), len(world.data))
    skewed = Inline(world.plan, {n: rows.take(cut) for n, cut in zip(world.data, cuts, strict=True)}, world.seed)
    left, right = trained(world).sample(200, 1), trained(skewed).sample(200, 1)
    for name in left.columns:
        np.testing.assert_array_equal(left.columns[name], right.columns[name])


def test_dependencies_survive_and_conditions_shift_the_other_columns() -> None:
    world = federation(4000, privacy={"epsilon": 3.0, "delta": 1e-6})
    real, model = everything(world), trained(world)
    made = model.sample(5000, 2)

    def slope(rows: Records) -> float:
        filled = ~np.isnan(rows.columns["dose"])
        return float(np.corrcoef(rows.columns["age"][filled], rows.columns["dose"][filled])[0, 1])

    assert slope(made) == pytest.approx(slope(real), abs=0.12)
    for name in ("dose", "ward"):
        missing = 4 if name == "ward" else np.nan
        both = [np.isclose(rows.columns[name], missing, equal_nan=True).mean() for rows in (real, made)]
        assert both[1] == pytest.approx(both[0], abs=0.02)
    for label, code in (("no", 0), ("yes", 1)):
        found = model.sample(2000, 5, where={"died": label})
        assert set(found.columns["died"]) == {code}
        age = real.columns["age"][real.columns["died"] == code].mean()
        assert found.columns["age"].mean() == pytest.approx(age, abs=2.5)
    with pytest.raises(InputError, match="died"):
        model.sample(5, 1, where={"died": "maybe"})


def test_a_run_resumes_between_asks() -> None:
    world = federation()
    model = build(world.plan)
    model.begin(statistics_of(world), 1)
    first = model.ask(0)
    assert first is not None
    model.absorb(world.total(model, first))
    resumed = build(world.plan)
    resumed.restore(model.state())
    second = resumed.ask(1)
    assert second is not None
    answers = world.total(model, second)
    for one in (model, resumed):
        one.absorb(answers)
    for name, array in model.state().items():
        np.testing.assert_array_equal(array, resumed.state()[name])
    assert resumed.ask(2) is None


def test_constraints_hold_in_every_row() -> None:
    smokes = {"a": "no", "b": "no", "c": "yes", "elsewhere": "yes"}
    constraints = [
        {"kind": "impossible", "combination": {"sex": ["m"], "ward": ["b"]}},
        {"kind": "relation", "column": "smoker", "of": "ward", "values": smokes},
    ]
    schema = plan_content(BAYES)["schema"]
    columns = schema["columns"] | {"ward": schema["columns"]["ward"] | {"missing": False}}
    plan = parse_plan(plan_content(BAYES, constraints=constraints) | {"schema": schema | {"columns": columns}})
    codec = Codec(plan.table)
    frames = [table(300, n).assign(ward=lambda rows: rows["ward"].replace("", "a")) for n in range(3)]
    world = Inline(plan, {p.name: codec.encode(f) for p, f in zip(plan.parties, frames, strict=True)}, 1)
    rows = codec.decode(trained(world).sample(500, 3))
    assert not ((rows["sex"] == "m") & (rows["ward"] == "b")).any()
    assert (rows["smoker"] == rows["ward"].map(smokes)).all()


def test_exact_counts_are_unaccounted_and_margins_are_kept() -> None:
    world = federation(300, privacy="none")
    model = trained(world)
    assert all(isinstance(event, Unaccounted) for event in model.whole_cost("party-1"))
    drawn = model.sample(len(everything(world)), 1)
    for name in ("sex", "ward", "died"):
        real = np.bincount(everything(world).columns[name].astype(int), minlength=5)
        assert np.abs(np.bincount(drawn.columns[name].astype(int), minlength=5) - real).max() <= 0.02 * real.sum()


def test_asks_outside_the_plan_are_refused() -> None:
    world = federation(50, settings={"parents": 2, "table_cells": 100})
    model = build(world.plan)
    assert isinstance(model, ReleasedSearch)
    model.begin(statistics_of(world), 1)
    ask = model.ask(0)
    assert ask is not None
    bins, pairs = ask.arrays["bins"], model.pairs[: model.tables - 1]
    too_large = tuple(model.names.index(name) for name in ("age", "dose", "admitted"))
    fine = np.concatenate([np.arange(part.stop - part.start) % 20 for part in model.cells.slices.values()])

    def refused(arrays: dict[str, Any], options: dict[str, Any]) -> None:
        with pytest.raises(ProtocolError):
            model.cost(Ask(arrays, options), "party-1")

    for cliques, number in (
        (model.pairs[1:], 0),  # fewer
        ([*model.pairs[1:], (0, 1, 2)], 0),  # others
        (pairs, 1),  # fewer
        ([*pairs, (0, 1, 2, 3)], 1),  # wider than a family
        ([*pairs, (1, 0)], 1),
        ([*pairs, (0, 99)], 1),
        ([*pairs, (3,)], 1),
        (model.pairs, 2),
    ):
        refused({"bins": bins, "cliques": contingency.pack_cliques(cliques)}, {"phase": "training", "round": number})
    packed = contingency.pack_cliques([*pairs, too_large])
    refused({"bins": fine, "cliques": packed}, {"phase": "training", "round": 1})  # cells
    finest = np.concatenate([np.arange(part.stop - part.start) for part in model.cells.slices.values()])
    refused(ask.arrays | {"bins": finest}, dict(ask.options))  # bins
    refused(ask.arrays | {"more": bins}, dict(ask.options))
    refused(ask.arrays, dict(ask.options) | {"steps": 1})
    refused({"bins": bins}, dict(ask.options))
    refused(ask.arrays | {"cliques": np.array(3)}, {"phase": "training", "round": 1})
    refused(ask.arrays | {"cliques": ask.arrays["cliques"].astype(np.float64)}, dict(ask.options))
    with pytest.raises(ProtocolError, match="before"):
        model.sample(3, 1)
    with pytest.raises(ProtocolError, match="shape"):
        model.absorb(Sum({"counts": np.zeros(3, dtype=np.int64)}, 1.0, ("party-1",)))


def test_too_few_columns_and_mixed_profiles_are_refused() -> None:
    one, three = ({"columns": {f"x{n}": {"kind": "integer", "min": 0, "max": 9} for n in range(m)}} for m in (1, 3))
    with pytest.raises(PlanError, match="two columns"):
        build(plan_of(BAYES, schema=one))
    with pytest.raises(PlanError, match="3 parents"):
        build(plan_of({"name": "bayes", "preset": "published"}, schema=three, profile="faithful"))
    with pytest.raises(PlanError, match="faithful"):
        build(plan_of({"name": "bayes", "search": "islands"}))
    with pytest.raises(PlanError, match="faithful"):
        build(plan_of(BAYES, profile="faithful"))
    with pytest.raises(PlanError, match="survivors"):
        plan_of({"name": "bayes", "population": 5, "survivors": 5})
