"""Copies are counted exactly, and twins among strangers excuse them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from synth.errors import InputError
from synth.metrics.attacks.copies import closeness, copies
from synth.metrics.spaces import LabelCodes
from synth.schema import Integer, Schema


def test_copies_are_counted_with_empty_cells_equal(clinic: Schema, patients: pd.DataFrame) -> None:
    made = pd.concat([patients.iloc[[3]], patients.iloc[[3]], patients.iloc[[0]].assign(age=21)])
    found = copies(patients, made, clinic)
    assert found.copied_rows == 2
    assert found.share.low < 2 / 3 < found.share.high
    assert found.null_share is None
    assert not found.flagged


def test_five_percent_of_copies_is_flagged(
    people: Schema, members: pd.DataFrame, strangers: pd.DataFrame, honest: pd.DataFrame
) -> None:
    leaky = pd.concat([members.head(75), honest.iloc[75:]])
    found = copies(members, leaky, people, holdout=strangers)
    assert found.copied_rows == 75
    assert found.flagged
    assert not copies(members, honest, people, holdout=strangers).flagged


def test_twins_among_strangers_excuse_copies(ward_only: Schema) -> None:
    rows = pd.DataFrame({"ward": ["a", "b", "c"] * 100})
    found = copies(rows, rows, ward_only, holdout=rows)
    assert found.copied_rows == 300
    assert not found.flagged


def test_a_table_of_only_the_most_usual_rows_copies_nobody(codes: Schema) -> None:
    """A synthesizer that saw no member and repeats what is common: it meets real rows often, and strangers as often."""
    rng = np.random.default_rng(0)
    usual = np.arange(1, 2001) ** -1.0
    flags = 0
    for _ in range(20):
        real, holdout = (pd.DataFrame({"code": _drawn(rng, usual, rows)}) for rows in (1000, 500))
        made = pd.DataFrame({"code": _drawn(rng, usual**1.5, 1000)})
        found = copies(real, made, codes, holdout=holdout)
        assert found.null_share is not None
        assert found.share.value == pytest.approx(found.null_share.value, abs=0.1)
        flags += found.flagged
    assert flags == 0  # of 20; 0.027 expected


def test_shares_are_of_as_many_real_as_holdout_rows(codes: Schema) -> None:
    real, holdout = pd.DataFrame({"code": range(1000)}), pd.DataFrame({"code": range(1000, 1250)})
    found = copies(real, real, codes, holdout=holdout)
    assert (found.copied_rows, found.compared_rows) == (1000, 250)
    assert found.share.value == 0.25
    assert found.null_share is not None
    assert found.null_share.value == 0.0
    assert found.flagged


def _drawn(rng: np.random.Generator, weights: np.ndarray, rows: int) -> np.ndarray:
    return rng.choice(len(weights), rows, p=weights / weights.sum())


@pytest.fixture
def codes() -> Schema:
    return Schema(columns={"code": Integer(min=0, max=2000)})


def test_distances_by_hand() -> None:
    schema = Schema.model_validate({"columns": {"x": {"kind": "integer", "min": 0, "max": 100}}})
    real, holdout = pd.DataFrame({"x": [0, 10]}), pd.DataFrame({"x": [5, 6]})
    found = closeness(real, pd.DataFrame({"x": [1, 10]}), schema, holdout=holdout)
    # Scaled by 10: distances 0.1 (second 0.9) and 0 (second 1); holdout 0.5/0.5 and 0.4/0.6.
    assert found.synthetic.dcr_min == 0.0
    assert found.synthetic.dcr_mean == pytest.approx(0.05)
    assert found.synthetic.nndr_median == pytest.approx((0.1 / 0.9 + 0.0) / 2)
    assert found.null is not None
    assert found.null.dcr_mean == pytest.approx(0.45)
    assert found.null.nndr_median == pytest.approx((1.0 + 0.4 / 0.6) / 2)
    assert found.dcr_mean_to_holdout == pytest.approx(0.4)


def test_share_closer_is_half_for_an_honest_table_and_one_for_copies(
    people: Schema, members: pd.DataFrame, strangers: pd.DataFrame, honest: pd.DataFrame
) -> None:
    small = {"real": members.head(300), "schema": people, "holdout": strangers.head(300)}
    honest_share = closeness(synthetic=honest.head(300), **small).share_closer_to_real  # type: ignore[arg-type]
    # Standard error about 0.029 at 300 rows (a little more: neighbours are shared); five of them.
    assert honest_share == pytest.approx(0.5, abs=0.15)
    copied = closeness(synthetic=members.head(300), space=LabelCodes, **small).share_closer_to_real  # type: ignore[arg-type]
    assert copied is not None
    assert copied > 0.95


def test_one_real_row_is_refused(clinic: Schema, patients: pd.DataFrame) -> None:
    with pytest.raises(InputError, match="at least two real rows"):
        closeness(patients.head(1), patients, clinic)
