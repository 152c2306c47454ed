"""The protocol of `marginals`: what is asked, what it costs, what noise the opened sums carry, what rows come out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from synth.encoding import contingency
from synth.encoding.records import Codec, Records
from synth.errors import InputError, PlanError, ProtocolError
from synth.interface import Answer, Ask, Sum
from synth.plan import Plan, parse_plan
from synth.privacy.accounting import compose
from synth.privacy.events import Unaccounted
from synth.privacy.noise import seeded_source
from synth.statistics.histograms import Statistics, StatisticsInquiry
from synth.synthesizers.marginals.synthesizer import Marginals
from tests.small import plan_of, table
from tests.synth.synthesizers.opened_noise import check_opened_noise

MARGINALS: dict[str, Any] = {"name": "marginals"}


class Federation:
    """Rows at parties, and the sums that would be opened; noise from the seed, the party and the ask's number only."""

    def __init__(self, plan: Plan, data: dict[str, Records], seed: int = 1) -> None:
        self.plan, self.data, self.seed = plan, data, seed

    def answers(self, inquiry: Marginals | StatisticsInquiry, ask: Ask, number: int) -> dict[str, Answer]:
        found = {}
        for party, rows in self.data.items():
            noise = seeded_source(self.seed, party, str(ask.options["phase"]), number)
            found[party] = inquiry.answer(ask, party, rows, {}, noise)[0]
        return found

    def statistics(self) -> Statistics:
        inquiry = StatisticsInquiry(self.plan)
        ask = inquiry.ask(0)
        assert ask is not None
        inquiry.absorb(Sum.of(self.answers(inquiry, ask, 0)))
        return inquiry.result()

    def trained(self) -> Marginals:
        model = Marginals(self.plan)
        model.begin(self.statistics(), 1)
        number = 0
        while (ask := model.ask(number)) is not None:
            model.absorb(Sum.of(self.answers(model, ask, number)))
            number += 1
        return model


DECLARED = 4000  # rows of a party, enough for all pairs to be counted


def federation(rows: int = 1000, seed: int = 1, settings: dict[str, Any] | None = None, **other: Any) -> Federation:
    plan = plan_of(MARGINALS | (settings or {}), rows=DECLARED, **other)
    codec = Codec(plan.table)
    return Federation(plan, {p.name: codec.encode(table(rows, n)) for n, p in enumerate(plan.parties)}, seed)


def everything(world: Federation) -> Records:
    return Records.concat(list(world.data.values()))


def test_the_budget_is_spent_and_not_exceeded() -> None:
    for settings in ({}, {"rounds": 1, "round_pairs": 5}, {"rounds": 3, "round_pairs": 4}):
        plan = federation(10, settings=settings).plan
        assert plan.privacy != "none"
        party = plan.parties[0].name
        events = StatisticsInquiry(plan).whole_cost(party) + Marginals(plan).whole_cost(party)
        spent = compose(events, plan.privacy.delta).epsilon
        assert 0.99 * plan.privacy.epsilon < spent <= plan.privacy.epsilon


def test_declared_cost_is_charged_cost_in_every_round() -> None:
    world = federation(settings={"rounds": 2, "round_pairs": 3})
    model = Marginals(world.plan)
    model.begin(world.statistics(), 1)
    charged, number = [], 0
    while (ask := model.ask(number)) is not None:
        charged += model.cost(ask, "party-1")
        model.absorb(Sum.of(world.answers(model, ask, number)))
        number += 1
    assert number == model.asks == 3
    assert charged == model.whole_cost("party-1")


@pytest.mark.parametrize("trust", ["shared", "local"])
def test_opened_counts_carry_exactly_the_promised_variance(trust: str) -> None:
    privacy = {"epsilon": 1.0, "delta": 1e-5, "noise": trust}
    world = federation(100, settings={"bins": 64}, parties=4, privacy=privacy)
    model = Marginals(world.plan)
    widths = [part.stop - part.start for part in model.cells.slices.values()]
    many_bins = np.concatenate([np.arange(width) * min(width, 64) // width for width in widths])
    check_opened_noise(world.plan, world.data, model, many_bins, model.pairs, 0)


def test_how_rows_are_spread_over_parties_does_not_matter() -> None:
    """Same rows, same noise: label-skewed parties give the same table as equal ones, to the last cell."""
    world = federation(400)
    rows = everything(world)
    by_label = np.argsort(rows.columns["died"], kind="stable")
    names = list(world.data)
    cuts = np.array_split(by_label, len(names))
    skewed = Federation(world.plan, {name: rows.take(cut) for name, cut in zip(names, cuts, strict=True)})
    assert len({tuple(np.unique(part.columns["died"])) for part in skewed.data.values()}) > 1
    left, right = world.trained().sample(200, 1), skewed.trained().sample(200, 1)
    for name in left.columns:
        np.testing.assert_array_equal(left.columns[name], right.columns[name])


def test_dependencies_survive() -> None:
    world = federation(4000, privacy={"epsilon": 3.0, "delta": 1e-6})
    real, made = everything(world), world.trained().sample(5000, 2)

    def old_and_dead(rows: Records) -> tuple[float, float]:
        old = rows.columns["age"] > 75
        dead = rows.columns["died"] == 1
        return float(dead[old].mean()), float(dead[~old].mean())

    def slope(rows: Records) -> float:
        filled = ~np.isnan(rows.columns["dose"])
        return float(np.corrcoef(rows.columns["age"][filled], rows.columns["dose"][filled])[0, 1])

    assert old_and_dead(made) == pytest.approx(old_and_dead(real), abs=0.05)
    assert slope(made) == pytest.approx(slope(real), abs=0.12)
    for name in ("dose", "ward"):
        missing = 4 if name == "ward" else np.nan
        shares = [np.isclose(rows.columns[name], missing, equal_nan=True).mean() for rows in (real, made)]
        assert shares[1] == pytest.approx(shares[0], abs=0.02)


def test_conditions_shift_the_other_columns() -> None:
    """Conditioning is done in the model: the dead are old, as in the real rows; and a derived seed gives the same."""
    world = federation(4000, privacy={"epsilon": 3.0, "delta": 1e-6})
    model, real = world.trained(), everything(world)
    for label, code in (("no", 0), ("yes", 1)):
        made = model.sample(2000, 5, where={"died": label})
        assert set(made.columns["died"]) == {code}
        age = real.columns["age"][real.columns["died"] == code].mean()
        assert made.columns["age"].mean() == pytest.approx(age, abs=2.0)
    with pytest.raises(InputError, match="nowhere"):
        model.sample(5, 1, where={"nowhere": "yes"})
    with pytest.raises(InputError, match="died"):
        model.sample(5, 1, where={"died": "maybe"})


def test_another_seed_gives_other_rows_of_the_same_model() -> None:
    model = federation().trained()
    first, again, other = (Codec(model.plan.table).decode(model.sample(100, seed)) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(other)


def test_a_run_resumes_between_rounds() -> None:
    world = federation(settings={"rounds": 1, "round_pairs": 4})
    model = Marginals(world.plan)
    model.begin(world.statistics(), 1)
    first = model.ask(0)
    assert first is not None
    model.absorb(Sum.of(world.answers(model, first, 0)))
    resumed = Marginals(world.plan)
    resumed.restore(model.state())
    for one in (model, resumed):
        ask = one.ask(1)
        assert ask is not None
        one.absorb(Sum.of(world.answers(one, ask, 1)))
    for name, array in model.state().items():
        np.testing.assert_array_equal(array, resumed.state()[name])
    assert resumed.ask(2) is None
    assert 0 < resumed.losses()["misfit"] < 3


def test_exact_counts_are_unaccounted() -> None:
    world = federation(300, settings={"model_size_mb": 0.1, "iterations": 300}, privacy="none")
    model = world.trained()
    assert all(isinstance(event, Unaccounted) for event in model.whole_cost("party-1"))
    drawn = model.sample(20 * len(everything(world)), 1)  # so that draws add less than 0.005
    for name in ("sex", "ward", "died"):
        real, made = (np.bincount(rows.columns[name].astype(int), minlength=5) for rows in (everything(world), drawn))
        assert np.abs(made / made.sum() - real / real.sum()).max() <= 0.02


def test_asks_outside_the_plan_are_refused() -> None:
    world = federation(50, settings={"round_pairs": 2, "rounds": 1})
    model = Marginals(world.plan)
    model.begin(world.statistics(), 1)
    ask = model.ask(0)
    assert ask is not None
    bins = ask.arrays["bins"]
    for cliques, number in (
        ([(0, 1, 2)], 0),
        ([(0, 99)], 0),
        ([(0, 1), (0, 2), (1, 2)], 1),
        ([(0, 1)], 1),
        ([(0, 1)], 2),
        ([], 0),
    ):
        bad = Ask({"bins": bins, "cliques": contingency.pack_cliques(cliques)}, {"phase": "training", "round": number})
        with pytest.raises(ProtocolError):
            model.cost(bad, "party-1")
    with pytest.raises(ProtocolError):
        model.cost(Ask({"bins": bins}, {"phase": "training", "round": 0}), "party-1")
    with pytest.raises(ProtocolError):
        model.absorb(Sum({"counts": np.zeros(3, dtype=np.int64)}, 1.0, ("party-1",)))
    with pytest.raises(ProtocolError, match="before"):
        model.sample(3, 1)


def test_many_columns_and_labels_stay_within_the_model_size() -> None:
    rng = np.random.default_rng(0)
    columns = {f"c{n}": {"kind": "categorical", "categories": [f"l{k}" for k in range(300)]} for n in range(50)}
    party = [{"name": "a", "rows": 2000}, {"name": "b", "rows": 2000}]
    settings = {"name": "marginals", "pairs": 200, "model_size_mb": 0.3, "iterations": 20}
    plan = parse_plan(
        {"name": "wide", "parties": party, "schema": {"columns": columns}, "synthesizer": settings, "privacy": "none"}
    )
    hidden = np.minimum(rng.geometric(0.05, 4000), 298)
    rows = Records({name: hidden + rng.integers(0, 2, 4000) for name in columns})
    model = Federation(plan, {"a": rows.take(slice(2000)), "b": rows.take(slice(2000, None))}).trained()
    assert model.tree is not None
    assert 0.1 < sum(belief.nbytes for belief in model.tree.beliefs) / 2**20 <= 0.3
    assert len(model.sample(500, 1)) == 500


def test_one_column_is_too_few() -> None:
    parties = [{"name": "a", "rows": 20}, {"name": "b", "rows": 20}]
    schema = {"columns": {"x": {"kind": "integer", "min": 0, "max": 9}}}
    plan = parse_plan(
        {"name": "one", "parties": parties, "schema": schema, "synthesizer": MARGINALS, "privacy": "none"}
    )
    with pytest.raises(PlanError, match="two columns"):
        Marginals(plan)
