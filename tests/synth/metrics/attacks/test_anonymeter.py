"""Singling out, linkability and inference: full risk for a copied table, none for an honest one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from synth.errors import InputError
from synth.metrics.attacks.gower import column_distance, nearest, nearest_without_each
from synth.metrics.attacks.inference import inference
from synth.metrics.attacks.linkability import linkability, split_columns
from synth.metrics.attacks.singling_out import isolated, singling_out, unique_descriptions
from synth.metrics.tables import table_of
from synth.schema import Schema


def test_gower_distance_by_hand(clinic: Schema, patients: pd.DataFrame) -> None:
    table = table_of(patients, clinic)
    assert column_distance(table, table, "age", 60.0)[0].tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert column_distance(table, table, "dose", 1.0)[3].tolist() == [1, 1, 1, 0]  # empty
    assert column_distance(table, table, "ward", 1.0)[0].tolist() == [0, 0, 1, 1]


def test_one_pass_equals_one_search_per_secret(people: Schema, members: pd.DataFrame, honest: pd.DataFrame) -> None:
    targets, candidates = table_of(members.head(40), people), table_of(honest, people)
    for secret, found in nearest_without_each(targets, candidates).items():
        others = [name for name in people.released if name != secret]
        assert (found == nearest(targets, candidates, others)).all()


def test_a_copied_table_is_fully_exposed(people: Schema, members: pd.DataFrame, strangers: pd.DataFrame) -> None:
    attacks = [
        singling_out(members, members, people, holdout=strangers, attacks=200),
        linkability(members, members, people, holdout=strangers, attacks=200),
        inference(members, members, people, holdout=strangers, attacks=200)["income"],
    ]
    for attempts in attacks:
        assert attempts is not None
        assert attempts.successes / attempts.attacks > 0.95
        assert attempts.risk.low > 0.6
        assert attempts.flagged


def test_an_honest_table_shows_no_risk(
    people: Schema, members: pd.DataFrame, honest: pd.DataFrame, strangers: pd.DataFrame
) -> None:
    # Seven tests at three standard errors: a false alarm once in about 100 seeds; the seed is fixed.
    secrets = inference(members, honest, people, holdout=strangers)
    found = singling_out(members, honest, people, holdout=strangers)
    assert found is not None
    assert not any(
        a.flagged for a in [found, linkability(members, honest, people, holdout=strangers), *secrets.values()]
    )
    assert secrets["club"].rate.value == pytest.approx(0.5, abs=0.12)  # a coin: five standard errors


def test_inference_tolerates_five_percent_of_a_number() -> None:
    schema = Schema.model_validate(
        {"columns": {"x": {"kind": "integer", "min": 0, "max": 1000}, "k": {"kind": "integer", "min": 0, "max": 9}}}
    )
    real = pd.DataFrame({"x": [100, 200, 0], "k": [1, 2, 3]})
    synthetic = pd.DataFrame({"x": [105, 211, 0], "k": [1, 2, 3]})
    assert inference(real, synthetic, schema)["x"].successes == 2


def test_descriptions_fit_one_synthetic_row_and_are_counted(people: Schema, members: pd.DataFrame) -> None:
    table = table_of(members, people)
    descriptions = unique_descriptions(table, 50, np.random.default_rng(0))
    assert len(descriptions) == len(set(descriptions)) == 50
    assert isolated(table, descriptions) == 50
    twice = table_of(pd.concat([members, members]), people)
    assert isolated(twice, descriptions) == 0


def test_a_table_of_twins_cannot_be_attacked_by_singling_out(people: Schema, members: pd.DataFrame) -> None:
    twins = pd.concat([members.head(1)] * 10)
    assert singling_out(members, twins, people) is None


def test_one_column_is_refused(ward_only: Schema) -> None:
    rows = pd.DataFrame({"ward": ["a", "b"]})
    for attack in (singling_out, linkability, inference):
        with pytest.raises(InputError, match="the schema has one"):
            attack(rows, rows, ward_only)


def test_columns_are_split_into_disjoint_halves_of_at_most_ten() -> None:
    first, second = split_columns([f"c{k}" for k in range(14)], np.random.default_rng(0))
    assert len(first) == len(second) == 5
    assert not set(first) & set(second)
