"""Which pairs are counted follows from the plan alone: fewer where rows are few, the target's if columns are many."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from synth.counting.estimates import Measurement, measured
from synth.counting.schedule import candidate_pairs
from synth.counting.selection import ranked, select
from synth.plan import Plan, parse_plan
from synth.synthesizers.marginals.synthesizer import Marginals


def plan_of(columns: int, rows: int, target: str | None = "c0", epsilon: float = 1.0) -> Plan:
    described = {f"c{number}": {"kind": "boolean", "false": "0", "true": "1"} for number in range(columns)}
    content = {
        "name": "pairs",
        "schema": {"columns": described} | ({"target": target} if target else {}),
        "parties": [{"name": f"party-{number}", "rows": rows // 3} for number in range(3)],
        "synthesizer": {"name": "marginals"},
        "privacy": {"epsilon": epsilon, "delta": 1e-5},
    }
    return parse_plan(content)


def pairs_of(plan: Plan, most: int = 600) -> list[tuple[int, ...]]:
    return candidate_pairs(plan, list(plan.table.released), most, 0.4)


def test_wide_tables_keep_the_target_and_neighbours() -> None:
    pairs = pairs_of(plan_of(25, 100_000), 100)
    assert len(pairs) == 100
    assert {(0, number) for number in range(1, 25)} <= set(pairs)
    assert {(number, number + 1) for number in range(24)} <= set(pairs)
    assert len(pairs_of(plan_of(40, 100_000, target=None), 10_000)) == 40 * 39 // 2


def test_few_rows_bear_the_targets_pairs_only() -> None:
    """1,000 rows and all 105 pairs: boosting was at chance, and 0.85 with the target's."""
    aimed = [(0, number) for number in range(1, 15)]
    assert pairs_of(plan_of(15, 1_000)) == aimed
    assert pairs_of(plan_of(15, 30_000)) == list(combinations(range(15), 2))
    assert pairs_of(plan_of(15, 1_000, epsilon=50.0)) == list(combinations(range(15), 2))
    assert 14 < len(pairs_of(plan_of(15, 6_000))) < 105


def test_many_pairs_of_the_target_leave_no_room_for_others_and_are_counted_again() -> None:
    plan = plan_of(300, 40_000)
    model = Marginals(plan)
    assert model.pairs == [(0, number) for number in range(1, 300)]
    assert model.noise is not None
    assert [event.queries for event in model.noise] == [299, 299]


@pytest.mark.parametrize("strength", [0, 400])
def test_a_weak_relation_of_two_yes_no_columns_is_seen(strength: int) -> None:
    """A contrast of 400 rows under noise of 150 a cell, 2.7 standard deviations each in four cells.
    Over 200 runs; the share of false alarms has a standard error of 0.02."""
    rng, seen = np.random.default_rng(0), 0
    columns: list[Measurement] = [measured((number,), np.array([20_000.0, 20_000.0]), 100.0) for number in range(2)]
    shape = strength * np.array([[1.0, -1.0], [-1.0, 1.0]])
    for _ in range(200):
        table = measured((0, 1), 10_000 + shape + rng.normal(0, 150, (2, 2)), 150.0**2)
        seen += select(columns, {(0, 1): table}, None, 2**20) == [(0, 1)]
    assert seen > 190 if strength else seen < 24


def test_pairs_are_ranked_by_what_noise_does_not_explain() -> None:
    """Not by their place in the list, nor by the noise of a large table."""
    rng = np.random.default_rng(1)
    sizes = [20, 20, 2, 2]
    columns = [measured((n,), np.full(size, 40_000.0 / size), 100.0) for n, size in enumerate(sizes)]
    tables = {}
    for pair in combinations(range(4), 2):
        shape = (sizes[pair[0]], sizes[pair[1]])
        tables[pair] = measured(pair, 40_000 / np.prod(shape) + rng.normal(0, 100, shape), 100.0**2)
    related = tables[2, 3].counts + 800 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    assert ranked(columns, tables | {(2, 3): measured((2, 3), related, 100.0**2)})[0] == (2, 3)
