"""The parts of `bayes`: genes are acyclic networks, tables add up, rows follow them, shares make Laplace noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from synth.encoding.contingency import Ints
from synth.encoding.scales import Floats
from synth.errors import ProtocolError
from synth.privacy.noise import seeded_source
from synth.synthesizers.bayes import genetics
from synth.synthesizers.bayes.genetics import Breeding, Individual, usable
from synth.synthesizers.bayes.islands import families_of, fitness_of
from synth.synthesizers.bayes.laplace import laplace_share, laplace_variance
from synth.synthesizers.bayes.network import Network, Node, conditional
from synth.synthesizers.bayes.scores import FamilyScores, information


def breeding(columns: int, parents: int, seed: int, told: Floats | None = None) -> Breeding:
    if told is None:
        told = np.random.default_rng(seed).random((columns, columns))
        told = told + told.T
    return Breeding(columns, parents, 12, 4, lambda one: fitness_of(one, told), seed)


def assert_network(parents: dict[int, tuple[int, ...]], columns: int, most: int) -> None:
    """Every column once, after all its parents, of which there are few and none twice: acyclic."""
    assert sorted(parents) == list(range(columns))
    seen: set[int] = set()
    for child, above in parents.items():
        assert set(above) <= seen
        assert len(set(above)) == len(above) <= most
        seen.add(child)


@given(columns=st.integers(2, 9), parents=st.integers(1, 3), seed=st.integers(0, 2**32), born=st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_every_individual_of_every_generation_is_a_network(columns: int, parents: int, seed: int, born: int) -> None:
    parents = min(parents, columns - 1)
    search = breeding(columns, parents, seed)
    alive = search.evolved(search.first(), born, 3, migrants=search.first()[:2])
    assert len(alive) == 12
    for one in alive:
        assert_network(usable(one), columns, parents)
        assert_network(families_of(one, parents), columns, parents)
        assert genetics.unpack(genetics.pack(one), columns, parents) == one


def test_evolution_never_loses_the_best_and_finds_the_obvious() -> None:
    told = np.full((8, 8), 0.01)
    for column in range(7):
        told[column, column + 1] = told[column + 1, column] = 1.0  # a chain
    search = Breeding(8, 1, 30, 6, lambda one: fitness_of(one, told), 3)
    alive, best = search.first(), -1.0
    for generation in range(60):
        alive = search.evolved(alive, generation, 1)
        fitness = fitness_of(alive[0], told)
        assert fitness >= best
        best = fitness
    assert fitness_of(search.first()[0], told) < 5.0
    assert best > 6.0  # 7 is perfect; the published operators may stop one edge short of it


def test_a_search_that_pauses_without_migrants_is_the_search_that_never_paused() -> None:
    """FedGA with one party is the centralised algorithm, for the same seed."""
    search = breeding(7, 2, 11)
    whole = search.evolved(search.first(), 0, 12)
    paused = search.first()
    for round_ in range(3):
        paused = search.evolved(paused, 4 * round_, 4, migrants=paused[:1])
    assert paused == whole


def test_migrants_that_are_no_networks_are_refused() -> None:
    fine = genetics.pack(breeding(4, 2, 0).first()[0])
    for place, value in ((0, 7), (0, int(fine[1])), (5, -1), (5, 4)):
        broken = fine.copy()
        broken[place] = value
        with pytest.raises(ProtocolError):
            genetics.unpack(broken, 4, 2)
    with pytest.raises(ProtocolError):
        genetics.unpack(fine[:-1], 4, 2)


@given(
    counts=st.lists(st.floats(-1e6, 1e6, allow_nan=False), min_size=12, max_size=12),
    shape=st.sampled_from([(12,), (3, 4), (2, 2, 3)]),
)
@settings(max_examples=60, deadline=None)
def test_conditional_tables_add_up_to_one(counts: list[float], shape: tuple[int, ...]) -> None:
    table = conditional(np.array(counts).reshape(shape))
    assert (table >= 0).all()
    np.testing.assert_allclose(table.sum(axis=-1), 1.0)
    with pytest.raises(ValueError, match="add up"):
        Node(0, (), table * 2)


def small_network() -> Network:
    """0 → 1, and 2 from both."""
    first = np.array([0.3, 0.7])
    second = np.array([[0.9, 0.1], [0.2, 0.8]])
    third = np.array([[[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]], [[0.1, 0.1, 0.8], [0.6, 0.2, 0.2]]])
    return Network([Node(0, (), first), Node(1, (0,), second), Node(2, (0, 1), third)])


def joint_of(network: Network) -> Floats:
    first, second, third = (node.table for node in network.nodes)
    joint: Floats = first[:, None, None] * second[:, :, None] * third
    return joint


def shares(drawn: dict[int, Ints]) -> Floats:
    counts = np.zeros((2, 2, 3))
    np.add.at(counts, (drawn[0], drawn[1], drawn[2]), 1)
    found: Floats = counts / counts.sum()
    return found


def test_rows_follow_the_network_and_conditions_follow_bayes() -> None:
    network, rng = small_network(), np.random.default_rng(0)
    joint = joint_of(network)
    np.testing.assert_allclose(shares(network.sample(20_000, rng)), joint, atol=0.003)  # stratified: far below 1/√n
    wanted = {2: np.array([0.0, 1.0, 0.5])}
    expected = joint * wanted[2]
    assert network.probability(wanted) == pytest.approx(expected.sum(), abs=0.01)
    # 160,000 rows are drawn for 20,000 kept: the share of a cell is known to 0.004 or better; a false alarm in 10^6.
    np.testing.assert_allclose(shares(network.sample(20_000, rng, wanted)), expected / expected.sum(), atol=0.02)
    assert network.probability({0: np.zeros(2)}) == 0.0


def drawn_rows(rows: int = 40_000) -> list[Ints]:
    """A hidden cause, two noisy copies, a copy of a copy, and a coin."""
    rng = np.random.default_rng(5)
    cause = rng.integers(0, 3, rows)

    def noisy(column: Ints, flips: float) -> Ints:
        return np.where(rng.random(rows) < flips, rng.integers(0, 3, rows), column)

    left, right = noisy(cause, 0.2), noisy(cause, 0.2)
    return [cause, left, right, noisy(left, 0.2), rng.integers(0, 3, rows)]


def test_a_known_network_is_recovered() -> None:
    """The edges of the network that made the rows, in any direction that says the same, and none to the coin."""
    scores = FamilyScores(drawn_rows(), [3] * 5, 10_000.0, 50.0, 2, 1000, None)
    search = Breeding(5, 0, 30, 5, scores.fitness, 1)
    best = scores.parents(search.evolved(search.first(), 0, 30)[0])
    assert_network(best, 5, 2)
    edges = {frozenset((child, parent)) for child, above in best.items() for parent in above}
    assert edges == {frozenset((0, 1)), frozenset((0, 2)), frozenset((1, 3))}


def test_noise_drops_weak_parents_and_the_target_is_always_one() -> None:
    order: Individual = ((0, 1, 2, 3, 4), (), (), (), (), ())
    drawn = drawn_rows()
    echo = np.random.default_rng(8).random(len(drawn[0])) < 0.1
    drawn[4] = np.where(echo, drawn[0], drawn[4])  # knows its cause one time in ten
    quiet, loud = (FamilyScores(drawn, [3] * 5, 40_000.0, variance, 1, 1000, None) for variance in (50.0, 1e6))
    assert quiet.parents(order)[4] == (0,)
    assert loud.parents(order)[4] == ()
    aimed = FamilyScores(drawn, [3] * 5, 40_000.0, 1e6, 2, 1000, 4).parents(order)
    assert next(iter(aimed)) == 4
    assert all(4 in above for child, above in aimed.items() if child != 4)
    limited = FamilyScores(drawn, [3] * 5, 40_000.0, 0.0, 2, 9, None).parents(order)
    assert max(len(above) for above in limited.values()) == 1  # tables of two columns have 9 cells


def test_information_is_that_of_the_last_axis() -> None:
    joint = joint_of(small_network())
    entropy = -sum(p * np.log(p) for p in joint.sum(axis=(0, 1)))
    given_both = -float((joint * np.log(small_network().nodes[2].table)).sum())
    assert information(joint) == pytest.approx(entropy - given_both)
    assert information(np.outer([0.5, 0.5], [0.1, 0.9])) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("parties", [3, 5, 10])
def test_shares_add_up_to_one_laplace_variable(parties: int) -> None:
    scale, draws = 12.5, 20_000
    shares_ = [laplace_share(scale, parties, draws, seeded_source(7, n)) for n in range(parties)]
    noise = np.sum(shares_, axis=0)
    # Kurtosis of Laplace is 6: the variance of n draws is known to √(5/n), 1.6 %; five of these: a false alarm in 10^6.
    assert noise.var() / laplace_variance(scale) == pytest.approx(1.0, abs=5 * np.sqrt(5 / draws))
    assert laplace_variance(scale) == pytest.approx(2 * scale**2, rel=0.002)
    # Spread evenly over its integer, discrete Laplace noise is Laplace's own up to 1/scale²; fixed seeds, p > 0.01.
    spread = noise + np.random.default_rng(parties).uniform(-0.5, 0.5, draws)
    assert stats.kstest(spread, stats.laplace(scale=scale).cdf).pvalue > 0.01
    assert np.sum(shares_[1:], axis=0).var() / laplace_variance(scale) < 1 - 1 / (2 * parties)  # one share missing
