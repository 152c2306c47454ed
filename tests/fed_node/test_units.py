"""A person is the unit: what leaves a party about somebody with a thousand rows is no more than about anybody else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fed_node.consent.description import describe
from fed_node.ledger.ledger import Budget, Ledger
from fed_node.source import CsvSource, ParquetSource, check_data
from fed_node.source.units import open_units
from synth.errors import BudgetError, FedsynthError, PrivacyError
from synth.interface import Ask
from synth.plan import Plan, parse_plan
from synth.privacy.coin import Coin
from synth.privacy.noise import seeded_source
from synth.programme import inquiries, whole_cost
from synth.statistics.histograms import StatisticsInquiry
from synth.synthesizers.registry import build

COLUMNS = {
    "who": {"kind": "identifier"},
    "month": {"kind": "integer", "min": 1, "max": 2000},
    "ward": {"kind": "categorical", "categories": ["a", "b", "c"]},
    "amount": {"kind": "integer", "min": 0, "max": 40},
}
PANEL = {"entity": "who", "time": "month", "length": 3}
PLANS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # what the schema and the privacy section say
    "one row of a person": ({"subject": "who"}, {}),
    "three rows of a person": ({"subject": "who"}, {"rows_per_subject": 3}),
    "a panel": ({"sequence": PANEL}, {}),
    "a panel, two windows": ({"sequence": PANEL | {"max_windows": 2}}, {}),
}


def plan_of(case: str, **changes: Any) -> Plan:
    schema, privacy = PLANS[case]
    content: dict[str, Any] = {
        "name": "people",
        "parties": [{"name": "north", "rows": 200}],
        "schema": {"columns": COLUMNS} | schema,
        "synthesizer": {"name": "marginals", "bins": 4},
        "privacy": {"epsilon": 2.0, "delta": 1e-5, "noise": "local"} | privacy,
        "secure_sum": {"statistics": "plain", "updates": "plain", "colluders": 0},
    }
    return parse_plan(content | changes)


def people(count: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    who = np.repeat(np.arange(count), rng.integers(1, 8, count))
    return pd.DataFrame(
        {
            "who": [f"p{each}" for each in who],
            "month": pd.Series(who).groupby(who).cumcount() + 1,
            "ward": rng.choice(["a", "b", "c"], len(who)),
            "amount": rng.integers(0, 41, len(who)),
        }
    )


def flooded(table: pd.DataFrame) -> pd.DataFrame:
    """The same rows and somebody with a thousand, all alike, which is worst for a sum."""
    flood = pd.DataFrame({"who": "victim", "month": range(1, 1001), "ward": "c", "amount": 7})
    return pd.concat([flood, table], ignore_index=True)


def released(plan: Plan, table: pd.DataFrame, folder: Path) -> list[np.ndarray]:
    """Every array that the party would release, with the same noise whatever the rows are."""
    folder.mkdir()
    table.to_csv(folder / "rows.csv", index=False)
    rows = open_units(CsvSource(path=folder / "rows.csv"), plan, folder, Coin(seeded_source(1)))
    statistics, found = StatisticsInquiry(plan), []
    first = statistics.ask(0)
    assert first is not None
    found.append(statistics.answer(first, "north", rows, {}, seeded_source(2))[0].arrays["counts"])
    for ask in asks(plan):
        found.append(build(plan).answer(ask, "north", rows, {}, seeded_source(3))[0].arrays["counts"])
    return found


def asks(plan: Plan) -> list[Ask]:
    """The tables of pairs over bins that a hostile aggregator would choose: few, so that rows pile up."""
    model = build(plan)
    cells = model.cells  # type: ignore[attr-defined]
    of_cell = np.concatenate([np.arange(part.stop - part.start) % 2 for part in cells.slices.values()])
    arrays = {"bins": of_cell.astype(np.int64), "cliques": np.array(model.pairs, dtype=np.int64)}  # type: ignore[attr-defined]
    return [Ask(arrays, {"phase": "training", "round": 0})]


@pytest.mark.parametrize("case", PLANS)
def test_a_thousand_rows_change_every_release_by_the_bounded_contribution(case: str, tmp_path: Path) -> None:
    plan = plan_of(case)
    before, after = released(plan, people(), tmp_path / "1"), released(plan, flooded(people()), tmp_path / "2")
    grid, model = inquiries(plan)["statistics"].grid, build(plan)  # type: ignore[attr-defined]
    tables = [grid.coarse.queries + grid.counted_again, len(model.pairs)]  # type: ignore[attr-defined]
    for one, other, queries, events in zip(before, after, tables, [whole_cost(plan, "north")] * 2, strict=True):
        change = np.abs(other - one)
        assert change.sum() == queries * plan.records_per_unit  # all of it is used, and no more
        assert change.max() <= plan.records_per_unit
        assert all(event.about == "subject" for event in events)


@pytest.mark.parametrize("case", PLANS)
def test_every_cell_holds_the_noise_that_was_charged(case: str, tmp_path: Path) -> None:
    """A unit in m cells needs m times the variance of an event that charges m histograms for one."""
    plan, none = plan_of(case), people(1).iloc[:0]
    (tmp_path / "x").mkdir()
    none.to_csv(tmp_path / "x" / "rows.csv", index=False)
    rows = open_units(CsvSource(path=tmp_path / "x" / "rows.csv"), plan, tmp_path, Coin(seeded_source(1)))
    inquiry = StatisticsInquiry(plan)
    event, ask = inquiry.event, inquiry.ask(0)
    assert event is not None
    assert ask is not None
    queries = inquiry.grid.coarse.queries + inquiry.grid.counted_again
    assert event.queries == queries * plan.records_per_unit
    drawn = [inquiry.answer(ask, "north", rows, {}, seeded_source(n))[0].arrays["counts"] for n in range(60)]
    assert np.var(drawn) == pytest.approx(event.variance * plan.records_per_unit, rel=0.08)


def test_rows_of_nobody_are_left_out(tmp_path: Path) -> None:
    plan = plan_of("one row of a person")
    table = people(10)
    table.loc[table["who"] == "p3", "who"] = ""
    table.to_csv(tmp_path / "rows.csv", index=False)
    rows = open_units(CsvSource(path=tmp_path / "rows.csv"), plan, tmp_path, Coin(seeded_source(1)))
    assert len(rows.at_hand()) == 9


def test_the_same_people_from_parquet(tmp_path: Path) -> None:
    plan, table = plan_of("a panel"), people()
    table.to_csv(tmp_path / "rows.csv", index=False)
    table.to_parquet(tmp_path / "rows.parquet")
    sources = CsvSource(path=tmp_path / "rows.csv"), ParquetSource(path=tmp_path / "rows.parquet")
    one, other = (open_units(each, plan, tmp_path, Coin(seeded_source(1))).at_hand() for each in sources)
    for name, values in one.columns.items():
        np.testing.assert_array_equal(values, other.columns[name])


def test_a_table_that_does_not_say_whose_rows_they_are(tmp_path: Path) -> None:
    people().drop(columns="who").to_csv(tmp_path / "rows.csv", index=False)
    report = check_data(CsvSource(path=tmp_path / "rows.csv"), plan_of("a panel").table)
    assert not report.usable
    assert "'who': is missing" in str(report)


def test_the_screen_says_one_person() -> None:
    plan = plan_of("three rows of a person")
    told = describe(plan, "north", whole_cost(plan, "north"))
    assert "for one person with all of their rows added or removed" in told
    assert "Used of one person: 3 rows at most; which ones, your own coin decides." in told
    assert 'whose row it is and when, and never counted: "who"' in told.replace("'", '"')
    assert "declare 200 people" in told


def test_losses_of_rows_and_of_people_are_not_added(tmp_path: Path) -> None:
    by_row = plan_of("one row of a person", schema={"columns": COLUMNS})
    ledger = Ledger(tmp_path / "ledger.sqlite", "patients", Budget(20.0, 1e-5))
    ledger.approve(by_row.digest(), whole_cost(by_row, "north"))
    by_person = plan_of("one row of a person")
    with pytest.raises(PrivacyError, match="keep a ledger for each"):
        ledger.approve(by_person.digest(), whole_cost(by_person, "north"))
    ledger.close()


def test_a_training_step_samples_and_clips_people() -> None:
    plan = plan_of("a panel", synthesizer={"name": "ctgan", "rounds": 2})
    training = inquiries(plan)["training"].whole_cost("north")
    assert {event.about for event in training} == {"subject"}
    assert "of the people" in training[0].words()
    assert "a person's largest influence" in training[0].words()
    with pytest.raises(FedsynthError, match="max_windows to 1"):
        plan_of("a panel, two windows", synthesizer={"name": "ctgan"})


def test_the_budget_of_people_runs_out_as_that_of_rows_does(tmp_path: Path) -> None:
    plan = plan_of("a panel")
    ledger = Ledger(tmp_path / "ledger.sqlite", "patients", Budget(2.1, 1e-5))
    ledger.approve(plan.digest(), whole_cost(plan, "north"))
    again = plan_of("a panel", name="again")
    with pytest.raises(BudgetError):
        ledger.approve(again.digest(), whole_cost(again, "north"))
    ledger.close()
