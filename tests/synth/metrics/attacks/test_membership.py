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
from synth.schema import Continuous, Integer, Schema

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
    found = judged(members, strangers, None, np.random.default_rng(0))
    # One of 100 strangers may pass: the threshold is the second highest, 98. Members above it: 98.5 .. 149.5 = 52.
    assert found.true_positive_rate.low < 0.52 < found.true_positive_rate.high
    assert found.false_positive_rate == 0.01
    # P(member > stranger): member i beats min(100, 51 + i) strangers: i = 0..48 give 51..99, the other 51 give 100.
    assert found.auroc.value == pytest.approx((sum(range(51, 100)) + 51 * 100) / 10_000)


def test_equal_scores_are_ordered_by_lot() -> None:
    """All members and 15 % of the strangers have the best score: one stranger in fifteen of those may be accused, so
    about one member in fifteen is, not none."""
    members, strangers = np.zeros(3000), np.repeat([0.0, -1.0], [450, 2550])
    found = judged(members, strangers, None, np.random.default_rng(0))
    assert found.false_positive_rate == 0.01
    # Members before the 31st of 450 tied strangers: about 3000 * 31 / 451 = 206, standard deviation 37; five of them.
    assert 0.0 < found.true_positive_rate.value < 0.13
    assert found.flagged


def test_nobody_is_flagged_when_all_scores_are_equal() -> None:
    found = judged(np.zeros(1000), np.zeros(1000), None, np.random.default_rng(0))
    assert found.auroc.value == 0.5
    assert not found.flagged


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_constant_column_does_not_hide_a_copied_table(attack: Attack) -> None:
    schema = Schema(columns={n: Integer(min=0, max=100_000) for n in ("height", "weight", "income")})
    rng = np.random.default_rng(0)
    members, strangers = (
        pd.DataFrame(rng.integers(0, 100_000, (400, 3)), columns=list(schema.columns)) for _ in range(2)
    )
    found = attack(members, members.assign(income=50_000), schema, strangers)
    assert found.auroc.value > 0.9
    assert found.flagged


def test_the_balls_members_are_drawn_from_the_whole_file() -> None:
    """Copies that stand at the end of the file are found as well as at its beginning."""
    rows = pd.DataFrame({"x": np.arange(2000.0)})
    schema = Schema(columns={"x": Continuous(min=0.0, max=4000.0)})
    strangers = pd.DataFrame({"x": np.arange(2000.0, 4000.0)})
    found = membership_by_distance(rows, rows.tail(1000), schema, strangers)
    assert found.ball_accuracy is not None
    assert found.ball_accuracy > 0.6  # half of the members are copied: 0.75, standard error 0.03


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
