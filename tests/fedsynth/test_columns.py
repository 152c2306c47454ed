"""`simulate --partition columns`: one table apart by columns, and together again."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from fed_node.source import source_of
from fedsynth.simulation import simulate as simulation
from fedsynth.simulation.columns import columns_apart, cut_by_columns, joined_records
from fedsynth.simulation.simulate import Folders, check_rows, real_records
from synth.encoding.records import Codec
from synth.errors import DataError, InputError
from synth.plan import parse_plan
from tests.small import plan_content, table
from tests.vertical import COLUMNS, content_by_columns, plan_by_columns

WHOLE = table(80)


def test_apart_and_together_again(tmp_path: Path) -> None:
    plan = plan_by_columns(COLUMNS, 80, privacy="none")
    parts = columns_apart(WHOLE, plan, seed=1)
    assert {name: list(part.columns) for name, part in parts.items()} == {
        name: ["patient", *[c for c in plan.table.released if c in held]] for name, held in COLUMNS.items()
    }
    orders = [tuple(part["patient"]) for part in parts.values()]
    assert len(set(orders)) == 3  # everybody has an order of its own
    for name, part in parts.items():
        part.to_csv(tmp_path / f"{name}.csv", index=False)
    joined = joined_records(plan, {name: source_of(tmp_path / f"{name}.csv") for name in parts})
    frames = [Codec(plan.table).decode(records) for records in (joined, Codec(plan.table).fit(WHOLE)[0])]
    left, right = (frame.sort_values(list(frame.columns)).reset_index(drop=True) for frame in frames)
    pd.testing.assert_frame_equal(left, right)


def test_rows_without_a_key_are_numbered() -> None:
    plan = plan_by_columns(COLUMNS, 80, privacy="none")
    parts = columns_apart(WHOLE.drop(columns="patient"), plan, seed=1)
    assert all(part["patient"].is_unique for part in parts.values())


def test_a_plan_by_rows_is_cut_into_even_parts() -> None:
    content = plan_content({"name": "marginals"}, privacy="none")
    plan = parse_plan(cut_by_columns(content, 3))
    assert [len(party.columns or []) for party in plan.parties] == [3, 2, 2]
    assert plan.linkage is not None
    assert plan.linkage.key == "patient"
    with pytest.raises(InputError, match="says which columns"):
        cut_by_columns(content_by_columns(), 3)


def test_a_table_is_prepared_for_the_whole_run(tmp_path: Path) -> None:
    WHOLE.to_csv(tmp_path / "whole.csv", index=False)
    folders = Folders(tmp_path / "run")
    content = content_by_columns(privacy="none")
    plan = simulation.prepare_columns(content, tmp_path / "whole.csv", None, folders, 1)
    assert {party.rows for party in plan.parties} == {80}
    assert all(report.usable for report in check_rows(plan, folders, None))
    assert len(real_records(plan, folders)) > 60  # rows whose cells fit at every party


def test_two_rows_of_one_person_end_it_before_anything_is_spent(tmp_path: Path) -> None:
    pd.concat([WHOLE, WHOLE.head(1)]).to_csv(tmp_path / "whole.csv", index=False)
    folders = Folders(tmp_path / "run")
    plan = simulation.prepare_columns(content_by_columns(privacy="none"), tmp_path / "whole.csv", None, folders, 1)
    with pytest.raises(DataError, match="is another row's key too"):
        list(check_rows(plan, folders, None))
