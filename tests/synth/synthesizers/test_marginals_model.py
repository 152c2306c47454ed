"""The graphical model: right marginals, right conditional rows, within its size; and the same fit as mbi's."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.counting.estimates import Measurement, average, measured
from synth.counting.evidence import Evidence
from synth.counting.fitting import Fitter, Zeros
from synth.counting.structure import junction_tree, model_bytes
from synth.counting.tree import Tree
from synth.encoding.contingency import Clique

SIZES = [3, 2, 4, 3]
CLIQUES = [(0, 1), (1, 2), (2, 3), (0, 3)]  # a cycle, so that triangulation matters


def joint(seed: int = 0) -> np.ndarray:
    """A distribution that factorises over the cycle."""
    rng = np.random.default_rng(seed)
    table = np.ones(SIZES)
    for first, second in CLIQUES:
        factor = rng.gamma(1.0, 1.0, (SIZES[first], SIZES[second])) + 0.05
        table = table * np.expand_dims(factor, [axis for axis in range(4) if axis not in (first, second)])
    return np.asarray(table / table.sum())


def margin(table: np.ndarray, clique: Clique) -> np.ndarray:
    return np.asarray(table.sum(axis=tuple(axis for axis in range(table.ndim) if axis not in clique)))


def evidence(table: np.ndarray, rows: float, noise: float = 0.0, seed: int = 0) -> Evidence:
    rng = np.random.default_rng(seed)

    def noisy(clique: Clique) -> Measurement:
        counts = rows * margin(table, clique)
        return measured(clique, counts + rng.normal(0, noise, counts.shape), max(noise, 1.0) ** 2)

    return Evidence.of([noisy((n,)) for n in range(4)], [noisy(c) for c in itertools.combinations(range(4), 2)])


def dense(tree: Tree) -> np.ndarray:
    """The joint distribution a tree stands for."""
    found = np.ones(SIZES)
    for clique, parent, belief in zip(tree.cliques, tree.parents, tree.beliefs, strict=True):
        if parent >= 0:
            apart = tuple(axis for axis, column in enumerate(clique) if column not in tree.cliques[parent])
            belief = belief / belief.sum(axis=apart, keepdims=True)
        order = np.argsort(clique)
        found = found * np.expand_dims(np.transpose(belief, order), [a for a in range(4) if a not in clique])
    return found


def test_exact_marginals_give_back_the_joint_distribution() -> None:
    truth = joint()
    fit = evidence(truth, 10_000).fit(CLIQUES, iterations=4000)
    assert np.abs(dense(fit.tree) - truth).sum() < 0.01


def test_the_fit_is_that_of_mbi() -> None:
    """McKenna's own implementation, on the same noisy tables, as the independent reference."""
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)
    from mbi import Domain, LinearMeasurement, estimation

    truth, rows, noise = joint(1), 5000.0, 20.0
    seen = evidence(truth, rows, noise, seed=2)
    parts = [*seen.columns, *(seen.tables[clique] for clique in CLIQUES)]
    ours = Fitter(junction_tree(CLIQUES, SIZES), parts).fit(rows, 5000, gain=0.0)
    names = ["a", "b", "c", "d"]
    linear = [
        LinearMeasurement(
            part.counts.ravel(), tuple(names[n] for n in part.clique), float(np.sqrt(part.variance.mean()))
        )
        for part in parts
        if np.ptp(part.variance) < 1e-9 * part.variance.max()
    ]
    assert len(linear) == len(parts)
    theirs = estimation.MirrorDescent().estimate(Domain(names, SIZES), linear, known_total=rows, iters=5000)
    for clique in CLIQUES:
        expected = np.asarray(theirs.project(tuple(names[n] for n in clique)).datavector(flatten=False)) / rows
        np.testing.assert_allclose(margin(dense(ours.tree), clique), expected, atol=2e-4)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9))
def test_junction_trees_hold_every_clique_and_run_together(seed: int, links: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = list(itertools.combinations(range(6), 2))
    cliques = [pairs[n] for n in rng.choice(len(pairs), links, replace=False)]
    sizes = rng.integers(1, 5, 6).tolist()
    structure = junction_tree(cliques, sizes)
    assert all(structure.home(clique) >= 0 for clique in cliques)
    for number, (clique, parent) in enumerate(zip(structure.cliques, structure.parents, strict=True)):
        earlier = set().union(*structure.cliques[:number]) if number else set()
        held = set(structure.cliques[parent]) if parent >= 0 else set()
        assert set(clique) & earlier <= held  # what was drawn before is known through the parent alone
    assert set().union(*structure.cliques) == set(range(6))
    assert model_bytes(cliques, sizes) == 8 * sum(
        int(np.prod(structure.shape(n))) for n in range(len(structure.cliques))
    )


def test_rows_drawn_have_the_models_counts() -> None:
    """Stratified: the distance from the model is far below that of independent draws (about 0.05 for 1,000 rows)."""
    truth = joint()
    tree = evidence(truth, 10_000).fit(CLIQUES, iterations=4000).tree
    drawn = tree.sample(1000, np.random.default_rng(0))
    counts = np.zeros(SIZES)
    np.add.at(counts, tuple(drawn[n] for n in range(4)), 1)
    model = dense(tree)
    for clique in CLIQUES:
        assert np.abs(margin(counts, clique) / 1000 - margin(model, clique)).sum() / 2 < 0.025


def test_conditional_rows_follow_the_conditional_distribution() -> None:
    tree = evidence(joint(), 10_000).fit(CLIQUES, iterations=4000).tree
    given = {0: np.array([0.0, 0.0, 1.0]), 2: np.array([0.0, 0.5, 0.0, 1.0])}
    weighted = dense(tree) * given[0][:, None, None, None] * given[2][None, None, :, None]
    assert tree.probability(given) == pytest.approx(weighted.sum())
    drawn = tree.sample(4000, np.random.default_rng(1), given)
    assert set(drawn[0]) == {2}
    assert set(drawn[2]) <= {1, 3}
    counts = np.zeros(SIZES)
    np.add.at(counts, tuple(drawn[n] for n in range(4)), 1)
    for column in (1, 2, 3):
        expected = margin(weighted, (column,)) / weighted.sum()
        assert np.abs(margin(counts, (column,)) / 4000 - expected).sum() / 2 < 0.02


def test_impossible_combinations_get_nothing_and_the_rest_is_fitted() -> None:
    truth = joint()
    possible = np.ones((3, 2), dtype=bool)
    possible[2, 1] = False
    truth = truth * possible[:, :, None, None]
    truth /= truth.sum()
    seen = evidence(truth, 10_000, noise=30.0)
    fit = Evidence(seen.columns, seen.tables, [Zeros((0, 1), possible)]).fit(CLIQUES, iterations=500)
    assert margin(dense(fit.tree), (0, 1))[2, 1] == 0
    drawn = fit.tree.sample(5000, np.random.default_rng(0))
    assert not ((drawn[0] == 2) & (drawn[1] == 1)).any()


def test_only_pairs_that_noise_does_not_explain_are_modelled() -> None:
    rng = np.random.default_rng(0)
    first = rng.dirichlet(np.ones(4))
    independent = np.einsum("a,b,c,d->abcd", rng.dirichlet(np.ones(3)), [0.3, 0.7], first, rng.dirichlet(np.ones(3)))
    assert evidence(independent, 5000, noise=20.0).select(None, 1.0) == []
    tied = np.einsum("a,bd,c->abcd", [0.2, 0.3, 0.5], [[0.4, 0.05, 0.05], [0.05, 0.05, 0.4]], first)
    assert evidence(tied, 5000, noise=20.0).select(None, 1.0) == [(1, 3)]


def test_the_size_limit_holds_and_the_target_comes_first() -> None:
    seen = evidence(joint(), 100_000)
    whole = seen.select(None, 1.0)
    assert len(whole) == 6
    limit = model_bytes([(0, 1), (1, 2), (1, 3)], SIZES)
    chosen = seen.select(1, limit / 2**20)
    assert set(chosen) == {(0, 1), (1, 2), (1, 3)}
    assert model_bytes(chosen, SIZES) <= limit


def test_averages_are_weighted_by_precision() -> None:
    good, poor = measured((0,), np.array([10.0, 20.0]), 1.0), measured((0,), np.array([40.0, 50.0]), 2.0)
    found = average([good, poor])
    np.testing.assert_allclose(found.counts, [20.0, 30.0])
    np.testing.assert_allclose(found.variance, [2 / 3, 2 / 3])
