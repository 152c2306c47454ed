"""Votes: the specification's reference values, the exact law against brute force, and what casting really does."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from synth.errors import PrivacyError
from synth.privacy.accounting import as_units, compose, pld_epsilon, rdp_epsilon
from synth.privacy.calibration import calibrate_votes
from synth.privacy.events import CountNoise, Votes, from_dict, to_dict
from synth.privacy.noise import seeded_source
from synth.privacy.selection.ballots import BallotBox
from synth.privacy.selection.law import (
    DRAW_BITS,
    apart_and_holding,
    best_threshold,
    expected_held,
    held_in,
    most_chosen,
    overlap_bounds,
    whole_law,
)

WEIGHTS = 76_330  # of SignDS-FL's network for Fashion-MNIST
STOCK = (2_636, 1_318)  # FedSTDG on stock prices: a tenth of 26,358 weights, and a twentieth


@pytest.mark.parametrize(
    ("chosen", "epsilon", "threshold", "share"),
    [
        (1, 1.0, 1, 0.2320),
        (1, 4.0, 1, 0.8585),
        (1, 8.0, 1, 0.9970),
        (3, 1.0, 1, 0.1855),
        (3, 4.0, 2, 0.4472),
        (3, 8.0, 3, 0.7738),
        (3, 12.0, 3, 0.9945),
        (5, 1.0, 1, 0.1596),
        (5, 4.0, 2, 0.3621),
        (5, 8.0, 3, 0.5917),
        (5, 12.0, 4, 0.7951),
    ],
)
def test_em_mds_as_published(chosen: int, epsilon: float, threshold: int, share: float) -> None:
    top = round(0.1 * WEIGHTS)
    assert best_threshold(WEIGHTS, top, chosen, epsilon) == threshold
    assert expected_held(WEIGHTS, top, chosen, threshold, epsilon) / chosen == pytest.approx(share, abs=1e-4)


@pytest.mark.parametrize(
    ("epsilon", "chosen", "threshold", "share"),
    [(0.5, 1, 1, 0.622), (2.0, 2, 2, 0.807), (4.0, 6, 5, 0.805), (7.2, 16, 13, 0.8045), (8.0, 19, 16, 0.804)],
)
def test_sub_mds_as_published(epsilon: float, chosen: int, threshold: int, share: float) -> None:
    assert most_chosen(*STOCK, epsilon, 0.8) == chosen
    assert best_threshold(*STOCK, chosen, epsilon) == threshold
    assert expected_held(*STOCK, chosen, threshold, epsilon) / chosen == pytest.approx(share, abs=5e-4)


def brute_force(event: Votes) -> dict[tuple[int, ...], dict[frozenset[int], float]]:
    """The probability of every vote under every set of coordinates that a client would vote for."""
    sets = [frozenset(each) for each in combinations(range(event.dimensions), event.chosen)]
    found = {}
    for wanted in combinations(range(event.dimensions), event.top):
        weights = [math.exp(event.epsilon * (len(each & set(wanted)) >= event.threshold)) for each in sets]
        found[wanted] = {each: weight / sum(weights) for each, weight in zip(sets, weights, strict=True)}
    return found


def hockey_stick(here: list[float], there: list[float], level: float) -> float:
    return sum(max(p - level * q, 0.0) for p, q in zip(here, there, strict=True))


SMALL = [Votes(7, 3, 3, 2, 1.2, 1.0, 1), Votes(6, 2, 1, 1, 2.0, 1.0, 1), Votes(6, 3, 2, 2, 0.7, 1.0, 1)]


@pytest.mark.parametrize("event", SMALL, ids=str)
def test_the_law_is_the_worst_of_all_pairs_and_no_worse(event: Votes) -> None:
    laws = [list(law.values()) for law in brute_force(event).values()]
    losses, masses = whole_law(event)
    for level in np.exp(np.linspace(-1.5, 1.5, 13) * event.epsilon):
        worst = max(hockey_stick(one, other, level) for one in laws for other in laws)
        assert np.maximum(masses - level * masses * np.exp(-losses), 0).sum() == pytest.approx(worst, abs=1e-12)


def test_a_sample_tells_no_more_than_the_theorem_says() -> None:
    """Two of four clients vote: brute force over who votes, one client's wishes replaced, everybody else's known."""
    event = Votes(4, 1, 1, 1, 1.5, 0.5, 1)
    votes = brute_force(event)
    others = [(0,), (0,), (3,)]

    def law(first: tuple[int, ...]) -> Counter[tuple[int, ...]]:
        found: Counter[tuple[int, ...]] = Counter()
        for one, two in combinations([first, *others], 2):
            for here, p in votes[one].items():
                for there, q in votes[two].items():
                    found[tuple(sorted([*here, *there]))] += p * q / 6
        return found

    losses, masses = whole_law(event)
    for changed in [(1,), (2,), (3,)]:
        one, other = law((0,)), law(changed)
        outcomes = sorted(set(one) | set(other))
        for level in np.exp(np.linspace(-1.5, 1.5, 25)):
            found = hockey_stick([one[o] for o in outcomes], [other[o] for o in outcomes], level)
            assert found <= np.maximum(masses - level * masses * np.exp(-losses), 0).sum() + 1e-12


def test_a_bit_beside_the_vote_is_composed_before_sampling() -> None:
    event = Votes(6, 2, 1, 1, 2.0, 1.0, 1, 0.5)
    (one, other), bit = [brute_force(event)[wanted] for wanted in ((0, 1), (2, 3))], 1 / (1 + math.exp(-0.5))
    here = [p * b for p in one.values() for b in (bit, 1 - bit)]
    there = [p * b for p in other.values() for b in (1 - bit, bit)]
    losses, masses = whole_law(event)
    for level in np.exp(np.linspace(-3, 3, 31)):
        expected = hockey_stick(here, there, level)
        assert np.maximum(masses - level * masses * np.exp(-losses), 0).sum() == pytest.approx(expected, abs=1e-12)
    assert max(losses) == pytest.approx(2.5)


def test_composed_by_two_accountants() -> None:
    once = Votes(10_000, 1_000, 1, 1, 4.0, 1.0, 1)
    assert compose([once], 1e-12).epsilon == pytest.approx(4.0, abs=1e-3)
    many = as_units([Votes(10_000, 1_000, 1, 1, 2.0, 0.01, 1000)])
    assert pld_epsilon(many, 1e-5, 1e-4) < rdp_epsilon(many, 1e-5) < 1.3 * pld_epsilon(many, 1e-5, 1e-4)
    rounds = [Votes(10_000, 1_000, 1, 1, 2.0, 0.01, 10)] * 100
    assert compose(rounds, 1e-5) == compose([Votes(10_000, 1_000, 1, 1, 2.0, 0.01, 1000)], 1e-5)


def test_composition_against_brute_force() -> None:
    """Three votes in full: δ at the reported ε, over all 27 sums of losses."""
    event = Votes(6, 2, 1, 1, 1.0, 1.0, 3)
    losses, masses = whole_law(event)
    total = (losses[:, None, None] + losses[:, None] + losses).ravel()
    mass = (masses[:, None, None] * masses[:, None] * masses).ravel()
    epsilon = compose([event], 0.01).epsilon
    assert (mass * np.maximum(1 - np.exp(epsilon - total), 0)).sum() == pytest.approx(0.01, rel=2e-3)


def test_calibration_is_the_largest_that_fits() -> None:
    def votes(epsilon: float) -> Votes:
        return Votes(1000, 100, 1, 1, epsilon, 0.05, 10)

    others = (CountNoise(5, 900.0),)
    found = calibrate_votes(2.0, 1e-5, votes, others)
    assert compose([*others, votes(found)], 1e-5).epsilon <= 2.0
    assert compose([*others, votes(1.002 * found)], 1e-5).epsilon > 2.0


def test_stored_form_never_changes() -> None:
    event = Votes(2636, 1318, 2, 2, 1.8, 0.1, 5, 0.2)
    assert to_dict(event) == {
        "kind": "votes",
        "dimensions": 2636,
        "top": 1318,
        "chosen": 2,
        "threshold": 2,
        "epsilon": 1.8,
        "sample_rate": 0.1,
        "steps": 5,
        "bit_epsilon": 0.2,
    }
    assert from_dict(to_dict(event)) == event
    assert "a secret 10.000%" in event.words()


@pytest.mark.parametrize(
    "changes", [{"top": 0}, {"top": 10}, {"chosen": 3}, {"threshold": 2}, {"sample_rate": 1.5}, {"bit_epsilon": -1.0}]
)
def test_what_is_no_vote_is_refused(changes: dict[str, float]) -> None:
    good = {"dimensions": 10, "top": 2, "chosen": 1, "threshold": 1, "epsilon": 1.0, "sample_rate": 0.5, "steps": 1}
    from_dict({"kind": "votes"} | good)
    with pytest.raises(PrivacyError):
        from_dict({"kind": "votes"} | good | changes)


def test_what_is_cast_has_the_law_it_says() -> None:
    """Every vote of one client, many times over, against the brute-force law (chi-square)."""
    event = Votes(6, 2, 2, 1, 1.0, 1.0, 1)
    wishes = np.array([[0.5, 2.0, -1.0, 3.0, 0.1, -2.0]])  # + votes for 1 and 3, - votes for 2 and 5
    laws, seen, times = brute_force(event), Counter[tuple[frozenset[int], int]](), 3000
    for number in range(times):
        votes, _ = BallotBox(event, False, seeded_source(number)).cast(wishes, np.zeros(1, dtype=bool))
        seen[frozenset(np.flatnonzero(votes).tolist()), int(votes.sum()) // 2] += 1
    expected = {
        (each, sign): times * p / 2 for sign, wanted in ((1, (1, 3)), (-1, (2, 5))) for each, p in laws[wanted].items()
    }
    assert set(seen) <= set(expected)
    assert stats.chisquare([seen[o] for o in expected], list(expected.values())).pvalue > 1e-4


def test_the_overlap_is_drawn_from_the_exact_law() -> None:
    bounds = overlap_bounds(7, 3, 3, 2, 1.2)
    weights = np.array([math.comb(3, n) * math.comb(4, 3 - n) * math.exp(1.2 * (n >= 2)) for n in range(4)])
    np.testing.assert_allclose(
        np.diff([0, *(end / 2**DRAW_BITS for end in bounds)]), weights / weights.sum(), rtol=1e-12
    )
    assert [held_in(draw, bounds) for draw in (0, bounds[0] - 1, bounds[0], 2**DRAW_BITS - 1)] == [0, 0, 1, 3]


def test_weights_that_do_not_exist_are_votes_lost() -> None:
    """A plan says among how many weights a vote chooses; a network with fewer has its votes, not its law, cut."""
    event = Votes(100, 10, 1, 1, 0.01, 1.0, 1)
    votes, _ = BallotBox(event, False, seeded_source(1)).cast(np.ones((400, 5)), np.zeros(400, dtype=bool))
    assert votes.shape == (5,)
    assert 0 < np.abs(votes).sum() < 200


def test_votes_do_not_depend_on_anything_but_order_and_survive_nonsense() -> None:
    event = Votes(10, 2, 1, 1, 3.0, 1.0, 1)
    wishes = np.random.default_rng(0).normal(size=(30, 40))
    nobody = np.zeros(30, dtype=bool)
    one, two = (BallotBox(event, True, seeded_source(1)).cast(each, nobody)[0] for each in (wishes, np.exp(5 * wishes)))
    np.testing.assert_array_equal(one, two)
    broken = np.where(np.arange(40) % 3 == 0, np.nan, np.inf) + wishes
    assert np.abs(BallotBox(event, True, seeded_source(1)).cast(broken, nobody)[0]).sum() <= 30
    with pytest.raises(PrivacyError, match="is none"):
        BallotBox(event, True, seeded_source(1)).cast(np.ones((1, 4)), np.zeros(1, dtype=bool))


def test_a_bit_is_flipped_as_often_as_it_should_be() -> None:
    event = Votes(10, 2, 1, 1, 3.0, 1.0, 1, 1.0)
    _, yes = BallotBox(event, True, seeded_source(3)).cast(np.ones((2000, 20)), np.ones(2000, dtype=bool))
    assert yes / 2000 == pytest.approx(math.e / (1 + math.e), abs=0.04)


def test_perturbed_sampling_knows_only_the_share() -> None:
    assert apart_and_holding(10_000, 1_000, 1, 1) == apart_and_holding(10, 1, 1, 1)
