"""Pairs are counted by class of the target where rows, cells and noise say that it pays, and nowhere else."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from benchmarks.marginals import federate
from synth.counting.estimates import measured
from synth.counting.evidence import Evidence
from synth.counting.triples import is_with_target, with_target
from synth.encoding.records import Records
from synth.errors import ProtocolError
from synth.interface import Ask
from synth.plan import Plan, parse_plan
from synth.privacy.accounting import compose
from synth.statistics.histograms import StatisticsInquiry
from synth.synthesizers.marginals.synthesizer import Marginals

PAIRS = [(0, 3), (1, 3), (0, 1), (0, 2), (2, 3)]
SIZES = [10, 10, 50, 2]
ROWS = 2_000


def test_a_table_with_the_target_replaces_its_pair_where_noise_is_no_more_than_sampling_error() -> None:
    assert with_target(PAIRS, 3, SIZES, 1e9, ROWS) == PAIRS
    assert with_target(PAIRS, None, SIZES, 0.0, ROWS) == PAIRS
    assert with_target(PAIRS, 3, SIZES, 20.0, ROWS) == [(0, 1, 3), (0, 2), (2, 3)]  # 200 cells, not 1,000
    assert with_target(PAIRS, 3, SIZES, 0.0, ROWS) == [(0, 1, 3), (0, 2, 3)]


def test_only_the_target_and_two_columns_of_the_plan_are_asked_for() -> None:
    assert is_with_target((0, 1, 3), 3, PAIRS)
    for clique, target in (((0, 1, 3), None), ((1, 2, 3), 3), ((0, 1, 2), 3), ((0, 3, 1), 3), ((0, 1, 1), 3), ((), 3)):
        assert not is_with_target(clique, target, PAIRS)


def exclusive(rows: int, seed: int) -> np.ndarray:
    """Two coins and whether they differ: every pair is independent, and the third follows from the others."""
    coins = np.random.default_rng(seed).integers(0, 2, (2, rows))
    return np.stack([*coins, coins[0] ^ coins[1]])


def test_a_model_has_what_only_three_columns_say() -> None:
    counts = np.zeros((2, 2, 2))
    np.add.at(counts, tuple(exclusive(4_000, 0)), 1)
    columns = [measured((n,), counts.sum(axis=tuple({0, 1, 2} - {n})), 1.0) for n in range(3)]
    seen = Evidence.of(columns, [measured((0, 1, 2), counts, 1.0)])
    assert set(seen.pairs) == set(combinations(range(3), 2))
    tree = seen.fit([(0, 1), (0, 2), (1, 2)], 1000).tree
    np.testing.assert_allclose(tree.beliefs[0].ravel(), counts.ravel() / 4_000, atol=0.002)


def plan_of(epsilon: float) -> Plan:
    columns = {f"c{number}": {"kind": "boolean", "false": "0", "true": "1"} for number in range(12)}
    content = {
        "name": "triples",
        "schema": {"columns": columns, "target": "c11"},
        "parties": [{"name": f"party-{number}", "rows": 20_000} for number in range(3)],
        "synthesizer": {"name": "marginals"},
        "privacy": {"epsilon": epsilon, "delta": 1e-5},
    }
    return parse_plan(content)


def trained(plan: Plan) -> Marginals:
    """Columns that hang together through one trait; noise from fixed seeds."""
    data = {}
    for number, party in enumerate(plan.parties):
        rng = np.random.default_rng(number)
        trait = rng.normal(size=20_000)
        data[party.name] = Records({f"c{n}": (trait + rng.normal(size=20_000) > 0).astype(np.int64) for n in range(12)})
    statistics, model = StatisticsInquiry(plan), Marginals(plan)
    federate(statistics, data, 0)
    model.begin(statistics.result(), 0)
    federate(model, data, 0)
    return model


def widths(model: Marginals) -> list[int]:
    return [len(clique) for clique in model.measured[1][0]]


def test_much_noise_counts_pairs_little_noise_tables_with_the_target_at_the_same_price() -> None:
    few, many = trained(plan_of(0.2)), trained(plan_of(20.0))
    assert set(widths(few)) == {2}
    assert widths(many).count(3) > 10
    assert len(widths(few)) == len(widths(many)) == 40
    for model, epsilon in ((few, 0.2), (many, 20.0)):
        assert [event.queries for event in model.noise or []] == [66, 40]
        before = StatisticsInquiry(model.plan).whole_cost("party-0")
        assert compose(before + model.whole_cost("party-0"), 1e-5).epsilon <= epsilon


def test_a_model_with_such_tables_is_saved_and_read() -> None:
    model = trained(plan_of(20.0))
    again = Marginals(model.plan)
    again.restore(model.state())
    assert again.measured[1][0] == model.measured[1][0]
    rows = [one.sample(500, 1, {"c11": "1"}).columns for one in (model, again)]
    for name, values in rows[0].items():
        np.testing.assert_array_equal(values, rows[1][name])
    assert set(rows[0]["c11"]) == {1}


def test_a_party_refuses_other_tables_of_three_columns() -> None:
    model = trained(plan_of(20.0))
    packed = np.array([(*pair, -1) for pair in model.pairs[:39]] + [(0, 1, 11)], dtype=np.int64)
    bins = {"bins": model._bins().of_cell}
    allowed = Ask(bins | {"cliques": packed}, {"phase": model.phase, "round": 1})
    assert model.cost(allowed, "party-0") == model.planned_costs("party-0")[1]
    for bad in ((0, 1, 2), (1, 0, 11), (0, 11, 11), (0, 1, 99)):
        wrong = np.concatenate([packed[:39], [bad]])
        with pytest.raises(ProtocolError):
            model.cost(Ask(bins | {"cliques": wrong}, {"phase": model.phase, "round": 1}), "party-0")
    first = np.array([(*pair, -1) for pair in model.pairs[:65]] + [(0, 1, 11)], dtype=np.int64)
    with pytest.raises(ProtocolError):
        model.cost(Ask(bins | {"cliques": first}, {"phase": model.phase, "round": 0}), "party-0")
