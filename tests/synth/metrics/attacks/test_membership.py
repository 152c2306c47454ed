"""Members of a copied table are found, of an honest one they are not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from synth.errors import InputError
from synth.metrics.attacks.membership import (
    Membership,
    ball_accuracy,
    judged,
    membership_by_density_ratio,
    membership_by_distance,
    nearest_distance,
)
from synth.schema import Schema

Attack = Callable[[pd.DataFrame, pd.DataFrame, Schema, pd.DataFrame], Membership]
ATTACKS: list[Attack] = [membership_by_distance, membership_by_density_ratio]


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_copied_table_reveals_every_member(
    attack: Attack, people: Schema, members: pd.DataFrame, strangers: pd.DataFrame
) -> None:
    found = attack(members, members, people, strangers)
    assert found.auroc.value > 0.99
    assert found.true_positive_rate.value > 0.99
    assert found.false_positive_rate <= 0.01
    assert found.flagged


@pytest.mark.parametrize("attack", ATTACKS)
def test_five_percent_of_copies_is_flagged_although_the_auroc_hardly_moves(
    attack: Attack, people: Schema, members: pd.DataFrame, strangers: pd.DataFrame, honest: pd.DataFrame
) -> None:
    leaky = pd.concat([members.head(75), honest.iloc[75:]])
    found = attack(members, leaky, people, strangers)
    assert found.auroc.value < 0.6
    assert found.true_positive_rate.value > 0.04
    assert found.flagged


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_honest_table_reveals_nobody(
    attack: Attack, people: Schema, members: pd.DataFrame, strangers: pd.DataFrame, honest: pd.DataFrame
) -> None:
    found = attack(members, honest, people, strangers)
    # 95 % interval; with the fixed seed this either always or never holds.
    assert found.auroc.low - 0.01 <= 0.5 <= found.auroc.high + 0.01
    assert not found.flagged


def test_figures_of_one_attack_by_hand() -> None:
    members, strangers = np.arange(100.0) + 50.5, np.arange(100.0)
    found = judged(members, strangers, None)
    # One of 100 strangers may pass: the threshold is the second highest, 98. Members above it: 98.5 .. 149.5 = 52.
    assert found.true_positive_rate.low < 0.52 < found.true_positive_rate.high
    assert found.false_positive_rate == 0.01
    # P(member > stranger): member i beats min(100, 51 + i) strangers: i = 0..48 give 51..99, the other 51 give 100.
    assert found.auroc.value == pytest.approx((sum(range(51, 100)) + 51 * 100) / 10_000)


def test_hilprechts_ball_finds_members_that_sit_in_the_synthetic_cloud() -> None:
    cloud = np.random.default_rng(0).normal(size=(500, 2))
    assert ball_accuracy(cloud[:50], cloud[:50] + 30.0, cloud, np.random.default_rng(1)) == 1.0


def test_distances_have_logarithms() -> None:
    points = np.array([[0.0, 1.0]])
    assert np.isfinite(np.log(nearest_distance(points, np.vstack([points, points + 1])))).all()


@pytest.mark.parametrize("attack", ATTACKS)
def test_too_few_holdout_rows_are_refused(
    attack: Attack, people: Schema, members: pd.DataFrame, strangers: pd.DataFrame
) -> None:
    with pytest.raises(InputError, match="give more holdout rows"):
        attack(members, members, people, strangers.head(50))
