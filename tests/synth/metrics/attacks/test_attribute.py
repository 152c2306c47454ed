"""Attribute disclosure: a secret that the known columns determine is guessed; a copied coincidence is flagged."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from synth.errors import InputError
from synth.metrics.attacks.attribute import attribute_disclosure
from synth.schema import Schema


def test_a_dependent_secret_is_guessed_about_everybody_and_not_flagged(people: Schema, members: pd.DataFrame) -> None:
    rule = members.assign(club=np.where(members.height > 0.5, "y", "n"))
    train, test = rule.iloc[:700], rule.iloc[700:]
    found = attribute_disclosure(train, train, people, keys=["height", "town"], secret="club", known=2, holdout=test)
    assert found is not None
    assert found.control_accuracy is not None
    assert found.accuracy["ensemble"].mean > 0.95
    assert found.control_accuracy["ensemble"].mean > 0.95
    assert found.accuracy["dummy"].mean < 0.6
    assert found.accuracy["ensemble"].deviation == 0.0  # one combination only
    assert not found.flagged


def test_a_memorised_coincidence_is_flagged(people: Schema, members: pd.DataFrame, strangers: pd.DataFrame) -> None:
    train, test = members.head(500), strangers.head(500)
    found = attribute_disclosure(
        train, train, people, keys=["height", "weight", "income", "town"], secret="club", holdout=test
    )
    assert found is not None
    assert found.known == 3
    assert found.accuracy["random_forest"].mean == pytest.approx(1.0, abs=0.02)
    assert found.flagged


def test_a_constant_secret_cannot_be_learnt(people: Schema, members: pd.DataFrame) -> None:
    assert (
        attribute_disclosure(members, members.assign(club="y"), people, keys=["town"], secret="club", known=1) is None
    )


@pytest.mark.parametrize(
    ("keys", "secret", "known", "said"),
    [
        (["town"], "height", 1, "not a categorical"),
        (["town", "club"], "club", 1, "also listed as known"),
        (["nowhere"], "club", 1, "not a released column"),
        (["town"], "club", 2, "cannot know 2 of 1"),
    ],
)
def test_impossible_attackers_are_refused(
    keys: list[str], secret: str, known: int, said: str, people: Schema, members: pd.DataFrame
) -> None:
    with pytest.raises(InputError, match=said):
        attribute_disclosure(members, members, people, keys=keys, secret=secret, known=known)
