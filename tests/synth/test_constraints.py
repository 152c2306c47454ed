"""Statements about every row: refused when they make no sense, honoured in any records, built into `marginals`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from synth.constraints import Between, Constraint, Impossible, Order, Relation, enforce, violations
from synth.encoding.records import Codec, Records
from synth.errors import InputError, PlanError
from synth.plan import parse_plan, parse_schema
from tests.synth.synthesizers.test_marginals import Federation

SCHEMA: dict[str, Any] = {
    "columns": {
        "sex": {"kind": "categorical", "categories": ["f", "m"]},
        "pregnant": {"kind": "categorical", "categories": ["no", "yes", "unknown"]},
        "age": {"kind": "integer", "min": 0, "max": 100},
        "grade": {"kind": "categorical", "categories": ["low", "mid", "high"], "missing": True},
        "grade_number": {"kind": "integer", "min": 1, "max": 3, "missing": True},
        "band": {"kind": "categorical", "categories": ["ab", "c"], "missing": True},
        "admitted": {"kind": "datetime", "min": "2020-01-01", "max": "2021-06-30"},
        "left": {"kind": "datetime", "min": "2020-01-01", "max": "2021-12-31", "missing": True},
        "lowest": {"kind": "continuous", "min": 0, "max": 50, "decimals": 1},
        "highest": {"kind": "continuous", "min": 0, "max": 80, "decimals": 1},
    },
    "target": "pregnant",
}
CONSTRAINTS: list[dict[str, Any]] = [
    {"kind": "impossible", "combination": {"sex": ["m"], "pregnant": ["yes"]}},
    {"kind": "impossible", "combination": {"age": {"min": 60}, "pregnant": ["yes"]}},
    {"kind": "order", "columns": ["admitted", "left"]},
    {"kind": "order", "columns": ["lowest", "highest"]},
    {"kind": "relation", "column": "grade_number", "of": "grade", "values": {"low": 1, "mid": 2, "high": 3}},
    {"kind": "relation", "column": "band", "of": "grade", "values": {"low": "ab", "mid": "ab", "high": "c"}},
]
TABLE = parse_schema(SCHEMA)


def rows(count: int, seed: int = 0) -> Records:
    """Rows of which all six statements are true."""
    rng = np.random.default_rng(seed)
    sex, age = rng.integers(0, 2, count), rng.integers(0, 95, count)
    pregnant = np.where((sex == 0) & (age < 55) & (rng.random(count) < 0.4), 1, np.where(rng.random(count) < 0.1, 2, 0))
    grade = rng.integers(0, 4, count)
    admitted = rng.integers(0, 500, count) * 86_400.0
    left = admitted + np.minimum(rng.geometric(0.05, count), 200) * 86_400.0
    lowest = np.round(rng.gamma(4, 3, count).clip(0, 50), 1)
    return Records(
        {
            "sex": sex,
            "pregnant": pregnant,
            "age": age.astype(np.float64),
            "grade": grade,
            "grade_number": np.where(grade == 3, np.nan, grade + 1.0),
            "band": np.array([0, 0, 1, 2])[grade],
            "admitted": admitted.astype(np.float64),
            "left": np.where(rng.random(count) < 0.2, np.nan, left),
            "lowest": lowest,
            "highest": np.round((lowest + rng.gamma(2, 4, count)).clip(0, 80), 1),
        }
    )


def plan_with(constraints: list[dict[str, Any]], **changes: Any) -> Any:
    content: dict[str, Any] = {
        "name": "constrained",
        "schema": SCHEMA,
        "parties": [{"name": "a", "rows": 2000}, {"name": "b", "rows": 2000}],
        "synthesizer": {"name": "marginals", "model_size_mb": 0.3},
        "privacy": {"epsilon": 2.0, "delta": 1e-5},
        "constraints": constraints,
    }
    return parse_plan(content | changes)


def parsed(constraints: list[dict[str, Any]]) -> list[Constraint]:
    found: list[Constraint] = plan_with(constraints).constraints
    return found


def test_true_rows_break_nothing_and_are_left_alone() -> None:
    real, known = rows(500), parsed(CONSTRAINTS)
    assert not violations(real, known, TABLE).any()
    same = enforce(real, known, TABLE)
    for name in real.columns:
        np.testing.assert_array_equal(same.columns[name], real.columns[name])


def test_broken_rows_are_found_and_repaired_where_that_is_possible() -> None:
    real, known = rows(300), parsed(CONSTRAINTS)
    rng = np.random.default_rng(1)
    mixed = Records({name: rng.permutation(values) for name, values in real.columns.items()})
    broken = violations(mixed, known, TABLE)
    assert 0.3 < broken.mean() <= 1.0
    repaired = enforce(mixed, known, TABLE)
    assert not violations(repaired, [one for one in known if not isinstance(one, Impossible)], TABLE).any()
    np.testing.assert_array_equal(np.isnan(repaired.columns["left"]), np.isnan(mixed.columns["left"]))
    Codec(TABLE).encode(Codec(TABLE).decode(repaired))  # still within the schema


def test_a_missing_cell_is_passed_over() -> None:
    schema = parse_schema(
        {"columns": {name: {"kind": "integer", "min": 0, "max": 9, "missing": True} for name in ("x", "y", "z")}}
    )
    records = Records({"x": np.array([5.0, np.nan]), "y": np.array([np.nan, 7.0]), "z": np.array([2.0, 3.0])})
    chain = [Order(columns=["x", "y", "z"])]
    assert violations(records, chain, schema).tolist() == [True, True]
    repaired = enforce(records, chain, schema)
    np.testing.assert_array_equal(repaired.columns["x"], [2.0, np.nan])
    np.testing.assert_array_equal(repaired.columns["z"], [5.0, 7.0])


@pytest.mark.parametrize(
    ("constraint", "says"),
    [
        ({"kind": "impossible", "combination": {"sex": ["x"]}}, "no labels"),
        ({"kind": "impossible", "combination": {"age": ["3"]}}, "no categorical"),
        ({"kind": "impossible", "combination": {"sex": {"min": 1}}}, "no range"),
        ({"kind": "impossible", "combination": {"age": {}}}, "neither"),
        ({"kind": "order", "columns": ["age", "sex"]}, "no numeric"),
        ({"kind": "order", "columns": ["age", "left"]}, "compared"),
        ({"kind": "order", "columns": ["age", "age"]}, "twice"),
        ({"kind": "order", "columns": ["highest", "lowest"]}, "rise"),
        ({"kind": "relation", "column": "age", "of": "grade", "values": {"low": 1}}, "every label"),
        ({"kind": "relation", "column": "age", "of": "left", "values": {}}, "categorical"),
        (
            {"kind": "relation", "column": "sex", "of": "grade", "values": dict.fromkeys(("low", "mid", "high"), "f")},
            "empty",
        ),
        (
            {"kind": "relation", "column": "band", "of": "grade", "values": dict.fromkeys(("low", "mid", "high"), "q")},
            "no lab",
        ),
        ({"kind": "relation", "column": "grade_number", "of": "sex", "values": {"f": 0, "m": 1}}, "bounds"),
        ({"kind": "relation", "column": "pregnant", "of": "sex", "values": {"f": "no", "m": "no"}}, "target"),
    ],
)
def test_statements_that_make_no_sense_are_refused(constraint: dict[str, Any], says: str) -> None:
    with pytest.raises(PlanError, match=says):
        plan_with([constraint])


def test_relations_must_not_conflict() -> None:
    with pytest.raises(PlanError, match="two relations"):
        plan_with([CONSTRAINTS[4], CONSTRAINTS[4]])
    with pytest.raises(PlanError, match="determined itself"):
        plan_with([CONSTRAINTS[5], {"kind": "relation", "column": "age", "of": "band", "values": {"ab": 1, "c": 2}}])
    with pytest.raises(PlanError, match="relation"):
        plan_with([CONSTRAINTS[4], {"kind": "order", "columns": ["grade_number", "age"]}])


def test_labels_written_as_numbers_are_text() -> None:
    assert Relation(column="x", of="y", values={1: 2}).values == {"1": 2}
    assert Impossible(combination={"x": [1]}).combination == {"x": ["1"]}
    assert Between(min=2).holds(np.array([1.0, 2.0, np.nan])).tolist() == [False, True, False]


@pytest.fixture(scope="module")
def world() -> Federation:
    real = rows(4000)
    return Federation(plan_with(CONSTRAINTS), {"a": real.take(slice(2000)), "b": real.take(slice(2000, None))})


def test_marginals_honours_every_statement(world: Federation) -> None:
    model = world.trained()
    assert "grade_number" not in model.names  # what is determined is neither counted nor paid for
    made = model.sample(4000, 1)
    assert not violations(made, world.plan.constraints, TABLE).any()
    real = rows(4000)
    for name, share in (("pregnant", 0.03), ("band", 0.03)):
        found, true = (np.bincount(r.columns[name].astype(int), minlength=4) / 4000 for r in (made, real))
        assert np.abs(found - true).max() < share
    stay = made.columns["left"] - made.columns["admitted"]
    assert np.nanmedian(stay) / 86_400 < 60  # truth: 13 days; independent dates sorted: 120


def test_conditions_on_a_determined_column_reach_its_source(world: Federation) -> None:
    model = world.trained()
    made = model.sample(300, 1, where={"band": "c", "pregnant": "yes"})
    assert set(made.columns["grade"]) == {2}
    assert set(made.columns["sex"]) == {0}
    with pytest.raises(InputError, match="no row can"):
        model.sample(10, 1, where={"sex": "m", "pregnant": "yes"})
