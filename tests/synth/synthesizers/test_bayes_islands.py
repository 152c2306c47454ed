"""The published form of `bayes`: islands, migrants, the mean that decides, Laplace noise, and an ε that is nominal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from synth.encoding import contingency
from synth.encoding.records import Codec, Records
from synth.errors import PlanError, ProtocolError
from synth.interface import Ask, Sum
from synth.privacy.claims import claim_of
from synth.privacy.events import Laplace, Unaccounted
from synth.privacy.noise import seeded_source
from synth.statistics.mixture_rounds import statistics_inquiry
from synth.synthesizers.bayes.genetics import Breeding
from synth.synthesizers.bayes.islands import IslandSearch, families_of, fitness_of
from synth.synthesizers.bayes.laplace import laplace_variance
from synth.synthesizers.registry import build
from tests.inline import Inline, statistics_of, trained
from tests.small import plan_of, table

ISLANDS: dict[str, Any] = {
    "name": "bayes",
    "preset": "published",
    "parents": 2,
    "bins": 6,
    "population": 12,
    "survivors": 4,
    "generations": 10,
    "interval": 4,
}
PRIVATE = {"epsilon": 2.0, "delta": 1e-5}


def federation(privacy: Any = "none", parties: int = 3, rows: int = 300, **other: Any) -> Inline:
    plan = plan_of(ISLANDS, parties=parties, profile="faithful", privacy=privacy, **other)
    codec = Codec(plan.table)
    return Inline(plan, {p.name: codec.encode(table(rows, n)) for n, p in enumerate(plan.parties)}, 1)


def model_of(world: Inline) -> IslandSearch:
    model = trained(world)
    assert isinstance(model, IslandSearch)
    return model


def test_without_noise_tables_are_those_of_the_pooled_rows_and_every_row_fits_the_schema() -> None:
    world = federation()
    model = model_of(world)
    assert model.network is not None
    assert model.winner is not None
    rows = Records.concat(list(world.data.values()))
    bins = model.known_bins().index(rows, model.names)
    for node, (child, above) in zip(model.network.nodes, families_of(model.winner, 2).items(), strict=True):
        assert (node.column, node.parents) == (child, above)
        counts = contingency.split(
            contingency.count(bins, model.sizes(), [(*above, child)]), [(*above, child)], model.sizes()
        )[0]
        seen = counts.sum(axis=-1) > 0
        expected = counts[seen] / counts[seen].sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(node.table[seen], expected)
        np.testing.assert_allclose(node.table[~seen], 1 / counts.shape[-1])
    drawn = Codec(world.plan.table).decode(model.sample(200, 3))
    Codec(world.plan.table).encode(drawn.astype("string"))
    assert set(Codec(world.plan.table).decode(model.sample(40, 2, where={"died": "yes"}))["died"]) == {"yes"}


def test_the_migrant_of_the_highest_mean_fitness_wins_and_migrants_come_from_every_party() -> None:
    world = federation()
    model = model_of(world)
    scoring = 1 + model.scoring  # after the statistics
    shown = [answer.arrays["fitness"] for answer in world.answers[scoring].values()]
    migrants = world.asks[scoring].arrays["migrants"]
    assert len(migrants) == 3
    best = migrants[int(np.argmax(np.mean(shown, axis=0)))]
    assert model.winner == model._unpacked(best[None, :])[0]
    for number in range(1, scoring):
        placed = Sum.of(world.answers[number]).arrays["best"]
        np.testing.assert_array_equal(placed[:, 0], 1)
        np.testing.assert_array_equal(placed[:, 1:], world.asks[number + 1].arrays["migrants"])


def test_one_island_is_the_centralised_search() -> None:
    world = federation(parties=1, secure_sum={"statistics": "plain", "updates": "plain", "colluders": 0})
    model = model_of(world)
    told = world.local["party-1"]["information"]
    seed = int(world.local["party-1"]["search_seed"][0])
    search = Breeding(len(model.names), 2, 12, 4, lambda one: fitness_of(one, told), seed)
    assert model.winner == search.evolved(search.first(), 0, 10)[0]


def test_what_is_charged_is_declared_and_only_the_tables_have_an_epsilon() -> None:
    world = federation(PRIVATE)
    model = model_of(world)
    declared = statistics_inquiry(world.plan).whole_cost("party-1") + model.whole_cost("party-1")
    assert world.charged["party-1"] == declared
    events = model.whole_cost("party-1")
    assert [type(event) for event in events] == [Unaccounted] * (model.scoring + 1) + [Laplace]
    claim = claim_of(events, 1e-5)
    assert claim.epsilon is None
    # One row replaced is one removed and one added: the thesis's ε = 2 is 1 in our relation.
    assert claim.nominal_epsilon == pytest.approx(1.0, abs=0.01)
    assert claim_of(federation_event(1), 1e-5).nominal_epsilon == pytest.approx(2.0, abs=0.01)


def federation_event(sensitivity: int) -> list[Any]:
    plan = plan_of(ISLANDS | {"table_sensitivity": sensitivity}, profile="faithful", privacy=PRIVATE)
    return build(plan).whole_cost("party-1")


@pytest.mark.parametrize(("colluders", "excess"), [(0, 1.0), (1, 1.5)])
def test_opened_tables_carry_the_laplace_noise_that_was_promised(colluders: int, excess: float) -> None:
    world = federation(PRIVATE, rows=30, secure_sum={"colluders": colluders})
    model = build(world.plan)
    assert isinstance(model, IslandSearch)
    tables = [tuple(sorted(clique)) for clique in [(0, 1, 5), (0, 2, 5), (0, 3, 5), (1, 2, 5), (1, 3, 5)]]
    options: dict[str, Any] = {"phase": "training", "round": model.scoring + 1}
    ask = Ask({"cliques": contingency.pack_cliques(tables)}, options)
    noise = []
    for repeat in range(12):
        answers = {p: model.answer(ask, p, d, {}, seeded_source(repeat, p))[0] for p, d in world.data.items()}
        model.bins = model._all
        rows = Records.concat(list(world.data.values()))
        exact = contingency.count(model._all.index(rows, model.names), model.sizes(), tables)
        noise.append(Sum.of(answers).arrays["counts"] - exact)
    found = np.concatenate(noise)
    scale = 2 * (len(model.names) - 2) / PRIVATE["epsilon"]
    assert model.scale == scale
    # Kurtosis at most 6: the variance of n draws is known to √(5/n); five of these, a false alarm in 10^6. One share of
    # three missing would be far outside (n is about 7,000: ± 13 %).
    promised = excess * laplace_variance(scale)  # with a colluder, half of the noise is at each honest party
    assert found.var() / promised == pytest.approx(1.0, abs=5 * np.sqrt(5 / len(found)))


def test_a_run_resumes_between_rounds() -> None:
    world = federation()
    model = build(world.plan)
    model.begin(statistics_of(world), 1)
    for number in range(5):  # three migrations, scores, families
        ask = model.ask(number)
        assert ask is not None
        answers = world.total(model, ask)
        resumed = build(world.plan)
        resumed.restore(model.state())
        for one in (model, resumed):
            one.absorb(answers)
        for name, array in model.state().items():
            np.testing.assert_array_equal(array, resumed.state()[name])
    assert resumed.ask(5) is None
    left, right = model.sample(20, 1), resumed.sample(20, 1)
    for name in left.columns:
        np.testing.assert_array_equal(left.columns[name], right.columns[name])


def test_asks_outside_the_plan_are_refused() -> None:
    world = federation(rows=40)
    model = model_of(world)
    migrants, cliques = world.asks[2].arrays["migrants"], world.asks[-1].arrays["cliques"]
    broken = migrants.copy()
    broken[0, 0] = broken[0, 1]
    for arrays, number in (
        ({"migrants": migrants}, 0),  # nobody has bred yet
        ({"migrants": migrants[:0]}, 1),
        ({"migrants": np.repeat(migrants, 2, axis=0)}, 1),
        ({"migrants": broken}, 1),
        ({"migrants": np.array(1)}, 1),
        ({"migrants": migrants.astype(np.float64)}, 1),
        ({"cliques": cliques}, 1),
        ({"cliques": cliques[:-1]}, 4),
        ({"cliques": np.where(cliques == cliques.max(), 99, cliques)}, 4),
        ({"cliques": cliques[:, ::-1]}, 4),
        ({"cliques": cliques, "migrants": migrants}, 4),
        ({"cliques": cliques}, 5),
    ):
        with pytest.raises(ProtocolError):
            model.cost(Ask(arrays, {"phase": "training", "round": number}), "party-1")
    with pytest.raises(ProtocolError):
        model.cost(Ask({"migrants": migrants}, {"phase": "training", "round": 1, "steps": 2}), "party-1")


def test_a_constant_column_and_an_unaffordable_table() -> None:
    """A party may hold one class only: then nothing is told about it, and nothing fails."""
    world = federation(rows=60)
    rows = world.data["party-1"]
    world.data["party-1"] = rows.take(rows.columns["died"] == 0)
    assert len(trained(world).sample(20, 1)) == 20
    assert not world.local["party-1"]["information"][-1].any()
    with pytest.raises(PlanError, match="table_cells"):
        build(plan_of(ISLANDS | {"table_cells": 50}, profile="faithful", privacy="none"))
