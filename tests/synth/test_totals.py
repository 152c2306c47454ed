"""Columns that add up to another, or to something within bounds; and orders of times that are not equally fine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from synth.constraints import Order, computed, enforce, violations
from synth.encoding.records import Codec, Records
from synth.errors import PlanError
from synth.plan import parse_plan, parse_schema
from synth.totals import Total
from tests.synth.synthesizers.test_marginals import Federation

DAY = 86_400.0
SCHEMA: dict[str, Any] = {
    "columns": {
        "admitted": {"kind": "datetime", "min": "2020-01-01", "max": "2021-12-31"},
        "left": {"kind": "datetime", "min": "2020-01-01 00:00", "max": "2022-12-31 23:59", "precision": "minute",
                 "format": "%Y-%m-%d %H:%M"},
        "stay": {"kind": "integer", "min": 0, "max": 400},
        "drugs": {"kind": "continuous", "min": 0, "max": 500, "decimals": 2},
        "bed": {"kind": "continuous", "min": 0, "max": 500, "decimals": 2},
        "bill": {"kind": "continuous", "min": 0, "max": 1000, "decimals": 2},
        "sex": {"kind": "categorical", "categories": ["f", "m"]},
    }
}  # fmt: skip
TABLE = parse_schema(SCHEMA)
BILL = {"kind": "total", "column": "bill", "add": ["drugs", "bed"]}
STAY = {"kind": "total", "column": "stay", "add": ["left"], "subtract": ["admitted"]}
BOUNDED = {"kind": "total", "add": ["left"], "subtract": ["admitted"], "min": 0, "max": 30}


def rows(count: int, seed: int = 0) -> Records:
    rng = np.random.default_rng(seed)
    admitted = rng.integers(0, 700, count) * DAY
    minutes = np.minimum(rng.geometric(0.2, count), 30) * 1440 - rng.integers(1, 1440, count)
    drugs, bed = np.round(rng.uniform(0, 500, (2, count)), 2)
    return Records({
        "admitted": admitted,
        "left": admitted + minutes * 60.0,
        "stay": np.round(minutes / 1440),
        "drugs": drugs,
        "bed": bed,
        "bill": np.round(drugs + bed, 2),
        "sex": rng.integers(0, 2, count),
    })  # fmt: skip


def shuffled(seed: int) -> Records:
    rng = np.random.default_rng(seed)
    return Records({name: rng.permutation(values) for name, values in rows(500).columns.items()})


def plan_with(*constraints: dict[str, Any]) -> Any:
    return parse_plan(
        {
            "name": "totals",
            "schema": SCHEMA,
            "parties": [{"name": "a", "rows": 3000}],
            "synthesizer": {"name": "marginals", "model_size_mb": 0.3},
            "privacy": "none",
            "secure_sum": {"statistics": "plain", "updates": "plain", "colluders": 0},
            "constraints": list(constraints),
        }
    )


def test_true_rows_break_nothing_and_are_left_alone() -> None:
    known, real = plan_with(BILL, STAY).constraints, rows(500)
    assert not violations(real, known, TABLE).any()
    for name, values in enforce(real, known, TABLE).columns.items():
        np.testing.assert_allclose(values, real.columns[name], err_msg=name)
    assert computed(known) == {"bill", "stay"}


@pytest.mark.parametrize("seed", range(3))
def test_totals_are_computed_and_what_cannot_be_is_found(seed: int) -> None:
    known, mixed = plan_with(BILL, STAY).constraints, shuffled(seed)
    made = enforce(mixed, known, TABLE)
    np.testing.assert_allclose(made.columns["bill"], mixed.columns["drugs"] + mixed.columns["bed"], atol=0.005)
    broken, stay = violations(made, known, TABLE), mixed.columns["left"] - mixed.columns["admitted"]
    np.testing.assert_array_equal(broken, (np.round(stay / DAY) < 0) | (np.round(stay / DAY) > 400))
    Codec(TABLE).encode(Codec(TABLE).decode(made))  # still within the schema


def test_a_time_is_another_and_a_duration() -> None:
    turned = plan_with({"kind": "total", "column": "left", "add": ["admitted", "stay"]}).constraints
    made = enforce(shuffled(1), turned, TABLE)
    np.testing.assert_allclose(made.columns["left"], made.columns["admitted"] + made.columns["stay"] * DAY)
    assert not violations(made, turned, TABLE).any()


def test_bounded_differences_spread_as_elsewhere_and_do_not_heap() -> None:
    known = plan_with(BOUNDED).constraints
    made = enforce(shuffled(2), known, TABLE)
    stay = (made.columns["left"] - made.columns["admitted"]) / DAY
    assert violations(made, known, TABLE).mean() < 0.02  # but for the end of the calendar
    assert (np.isclose(stay, 0) | np.isclose(stay, 30)).mean() < 0.05
    assert np.unique(stay).size > 10


def test_a_model_keeps_totals_and_its_rows_are_true() -> None:
    plan = plan_with(BILL, {"kind": "order", "columns": ["admitted", "left"]}, BOUNDED)
    model = Federation(plan, {"a": rows(3000)}).trained()
    made = model.sample(500, 1)
    assert not violations(made, plan.constraints, plan.table).any()
    time_of_day = made.columns["left"] % DAY
    assert (time_of_day == 0).mean() < 0.02  # 43 % came out as midnight where only days had changed places
    assert "bill" not in model.names


@pytest.mark.parametrize("seed", range(3))
def test_orders_of_days_and_minutes_keep_the_time_of_day(seed: int) -> None:
    order = [Order(columns=["admitted", "left"])]
    mixed = shuffled(seed)
    assert violations(mixed, order, TABLE).mean() > 0.3
    made = enforce(mixed, order, TABLE)
    assert not violations(made, order, TABLE).any()
    before, after = mixed.columns["left"] % DAY, made.columns["left"] % DAY
    np.testing.assert_array_equal(before, after)


def test_the_same_day_is_in_order() -> None:
    schema = parse_schema({"columns": {"seen": SCHEMA["columns"]["left"], "day": SCHEMA["columns"]["left"] | {
        "precision": "day", "format": "%Y-%m-%d"}}})  # fmt: skip
    same = Records({"seen": np.array([3 * DAY + 3600.0, 4 * DAY]), "day": np.array([3 * DAY, 3 * DAY])})
    assert violations(same, [Order(columns=["seen", "day"])], schema).tolist() == [False, True]


@pytest.mark.parametrize(
    ("constraint", "says"),
    [
        ({"kind": "total", "add": ["drugs"]}, "give one of the two"),
        ({"kind": "total", "add": ["drugs", "drugs"], "max": 3}, "twice"),
        ({"kind": "total", "add": ["sex"], "max": 3}, "no numeric"),
        ({"kind": "total", "add": ["left", "admitted"], "max": 3}, "times add up"),
        ({"kind": "total", "column": "stay", "add": ["left"]}, "times add up"),
        ({"kind": "total", "column": "left", "add": ["stay"]}, "times add up"),
    ],
)
def test_totals_that_make_no_sense_are_refused(constraint: dict[str, Any], says: str) -> None:
    with pytest.raises(PlanError, match=says):
        plan_with(constraint)
    with pytest.raises(PlanError, match="computed itself"):
        plan_with(BILL, {"kind": "total", "add": ["bill"], "max": 3})


def test_a_missing_cell_has_any_total() -> None:
    columns = {name: {"kind": "integer", "min": 0, "max": 9, "missing": True} for name in ("x", "y")}
    schema = parse_schema({"columns": columns})
    records = Records({"x": np.array([np.nan, 9.0]), "y": np.array([1.0, 9.0])})
    assert violations(records, [Total(add=["x", "y"], max=5)], schema).tolist() == [False, True]
