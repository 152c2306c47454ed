"""Rows of a tree, settled: the pairs that the tree left out are there, and nothing that it knew is lost."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from synth.counting.estimates import measured
from synth.counting.evidence import Evidence
from synth.counting.fitting import Zeros
from synth.counting.settling import Settled
from synth.counting.tree import Tree
from synth.encoding.contingency import Clique
from synth.encoding.scales import Floats

SIZES = (3, 2, 4, 3)
CHAIN = [(0, 1), (1, 2), (2, 3)]  # what the tree has room for; columns 0 and 3 depend on each other besides
ROWS = 20_000


def joint() -> Floats:
    """A distribution over four columns, in which every neighbour of a ring is related."""
    rng = np.random.default_rng(4)
    table = np.ones(SIZES)
    for pair in [*CHAIN, (0, 3)]:
        factor = rng.gamma(2.0, 1.0, [SIZES[column] for column in pair]) + 0.1
        table = table * np.expand_dims(factor, [axis for axis in range(4) if axis not in pair])
    return np.asarray(table / table.sum())


def margin(table: Floats, clique: Clique) -> Floats:
    return np.asarray(table.sum(axis=tuple(axis for axis in range(4) if axis not in clique)))


def evidence(table: Floats, zeros: tuple[Zeros, ...] = ()) -> Evidence:
    cliques = [(n,) for n in range(4)], list(itertools.combinations(range(4), 2))
    columns, pairs = ([measured(c, ROWS * margin(table, c), 25.0) for c in each] for each in cliques)
    return Evidence.of(columns, pairs, zeros)


@pytest.fixture(scope="module")
def settled() -> Settled:
    seen = evidence(joint())
    found = seen.settled(seen.fit(CHAIN, 2000).tree)
    assert found is not None
    return found


def drawn(model: Tree | Settled, rows: int = ROWS, given: dict[int, Floats] | None = None) -> Floats:
    rows_drawn = model.sample(rows, np.random.default_rng(5), given)
    counts = np.zeros(SIZES)
    np.add.at(counts, tuple(rows_drawn[column] for column in range(4)), 1)
    return counts / max(rows, 1)


def far(found: Floats, clique: Clique) -> float:
    return float(np.abs(margin(found, clique) - margin(joint(), clique)).sum() / 2)


def test_pairs_without_room_in_the_tree_are_in_its_settled_rows(settled: Settled) -> None:
    assert far(drawn(settled.tree), (0, 3)) > 0.05
    rows = drawn(settled)
    for pair in itertools.combinations(range(4), 2):
        assert far(rows, pair) < 0.006  # independent draws of so many rows are 0.008 off
    assert np.abs(rows - joint()).sum() / 2 < 0.3 * np.abs(drawn(settled.tree) - joint()).sum() / 2


def test_under_a_condition_rows_are_those_of_the_joint_distribution(settled: Settled) -> None:
    """No table says what to expect there; what was learned does."""
    only = np.array([0.0, 0.0, 1.0])
    for model, least, most in ((settled, 0.0, 0.03), (settled.tree, 0.05, 1.0)):
        rows = drawn(model, given={0: only})
        np.testing.assert_allclose(margin(rows, (0,)), only)
        real = joint()[2] / joint()[2].sum()
        assert least <= np.abs(margin(rows, (3,)) - real.sum(axis=(0, 1))).sum() / 2 <= most


def test_the_same_seed_draws_the_same_rows_and_a_saved_model_too(settled: Settled) -> None:
    again = Settled.from_arrays(settled.tree, settled.to_arrays())
    np.testing.assert_array_equal(drawn(settled, 300), drawn(again, 300))


@pytest.mark.parametrize("rows", [0, 1, 7, 250])
def test_few_rows_are_as_many_as_were_asked_for(settled: Settled, rows: int) -> None:
    found = settled.sample(rows, np.random.default_rng(0))
    assert [len(found[column]) for column in range(4)] == [rows] * 4
    assert all(found[column].min() >= 0 and found[column].max() < SIZES[column] for column in range(4) if rows)


def test_a_tree_with_room_for_all_pairs_is_left_as_it_is() -> None:
    seen = evidence(joint())
    assert seen.settled(seen.fit(list(itertools.combinations(range(4), 2)), 200).tree) is None


def test_what_a_constraint_rules_out_is_never_settled_for() -> None:
    possible = np.ones((3, 4), dtype=bool)
    possible[0, 1:] = False
    table = joint() * np.expand_dims(possible, (1, 3))
    zero = Zeros((2, 0), possible.T)  # as a constraint may say it: columns in any order
    seen = evidence(table / table.sum(), (zero,))
    found = seen.settled(seen.fit([(2, 0), *CHAIN], 1000).tree)
    assert found is not None
    assert margin(drawn(found), (0, 2))[~possible].max() == 0
