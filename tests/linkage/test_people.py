"""Whose row is whose: who is left out, what is made of bad rows, and what of it anybody sees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fed_node.linkage.people import NOBODY, People, check_source, pseudonyms
from fed_node.source import source_of
from synth.linkage.linked import room, strangers
from synth.linkage.own import own_table
from synth.privacy.noise import seeded_source
from tests.linkage.consortium import Consortium, Outcome, carried_out
from tests.linkage.test_runs import expected_counts
from tests.vertical import COLUMNS, TWO, plan_by_columns, tables_by_columns, whole_table

ROWS = 60
WHOLE = whole_table(ROWS)
PLAN = plan_by_columns(COLUMNS, ROWS)


def written(table: pd.DataFrame, folder: Path) -> Path:
    table.to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


def test_own_table_is_the_party_s_columns_and_the_key() -> None:
    assert list(own_table(PLAN, "insurer").released) == ["sex", "smoker"]
    assert own_table(PLAN, "insurer").target is None
    assert own_table(PLAN, "registry").target == "died"


def test_every_person_has_one_place_whatever_the_rows_are(tmp_path: Path) -> None:
    """Two rows, no key, a cell that does not fit: nothing is refused, and nobody else's place depends on it."""
    table = WHOLE[["patient", "sex", "smoker"]].head(6).copy()
    table.iloc[1, 0] = table.iloc[0, 0]  # another row of the same person
    table.iloc[2, 0] = ""
    table.iloc[3, 1] = "?"  # an undeclared label: its row counts nowhere, but the person is there
    table.iloc[4, 0] = f"  {table.iloc[4, 0]} "
    people = People.read(source_of(written(table, tmp_path)), own_table(PLAN, "insurer"), "patient")
    assert people.keys == ["p0", "p3", "p4", "p5"]
    assert people.record.tolist() == [0, NOBODY, 3, 4]
    assert len(people.records) == 5


def test_two_rows_of_one_person_are_for_people_to_mend(tmp_path: Path) -> None:
    table = pd.concat([WHOLE[["patient", "sex", "smoker"]], WHOLE[["patient", "sex", "smoker"]].head(2)])
    report = check_source(PLAN, "insurer", source_of(written(table, tmp_path)))
    assert not report.usable
    assert "is another row's key too in 2 cell(s), rows 62, 63" in str(report)
    fine = check_source(PLAN, "insurer", source_of(written(table.head(ROWS), tmp_path)))
    assert fine.fits


def test_a_file_without_the_key_is_refused_by_its_name(tmp_path: Path) -> None:
    path = written(WHOLE[["sex", "smoker"]], tmp_path)
    with pytest.raises(Exception, match="column 'patient': is missing from the file"):
        check_source(PLAN, "insurer", source_of(path))


def test_pseudonyms_are_the_same_under_one_key_and_unrelated_under_another() -> None:
    one, again, other = (pseudonyms(key, "person", ["a", "b"]) for key in (b"k" * 32, b"k" * 32, b"l" * 32))
    assert one.tolist() == again.tolist()
    assert not set(one.tolist()) & set(other.tolist())
    assert not set(one.tolist()) & set(pseudonyms(b"k" * 32, "stranger", ["a", "b"]).tolist())


def test_strangers_hide_a_person_and_never_take_one_away() -> None:
    found = [strangers(seeded_source(seed), 100.0) for seed in range(2000)]
    assert min(found) >= 0
    assert max(found) <= 2 * room(100.0)
    assert np.mean(found) == pytest.approx(room(100.0), abs=1)
    assert np.var(found) == pytest.approx(100.0, rel=0.15)
    assert strangers(seeded_source(1), None) == 0


def test_whoever_is_not_at_all_parties_is_left_out(tmp_path: Path) -> None:
    tables = tables_by_columns(WHOLE, COLUMNS)
    keep = WHOLE["patient"].iloc[5:50]
    tables["hospital"] = tables["hospital"][~tables["hospital"]["patient"].isin(WHOLE["patient"].iloc[:5])]
    tables["registry"] = tables["registry"][~tables["registry"]["patient"].isin(WHOLE["patient"].iloc[50:])]
    plan = plan_by_columns(COLUMNS, ROWS, privacy="none")
    outcome = carried_out(Consortium(plan, tables, tmp_path))
    model: Any = outcome.model
    assert outcome.alignment.places() == len(keep)
    both = WHOLE[WHOLE["patient"].isin(keep)]
    np.testing.assert_array_equal(model.measured[0][1], expected_counts(outcome, both, 0))


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> tuple[Consortium, Outcome]:
    consortium = Consortium(
        plan_by_columns(TWO | {"notary": []}, ROWS),
        tables_by_columns(WHOLE, TWO | {"notary": []}),
        tmp_path_factory.mktemp("private"),
    )
    return consortium, carried_out(consortium)


def test_the_aggregator_sees_nobody_s_number_of_people(private: tuple[Consortium, Outcome]) -> None:
    """Lists of pseudonyms and places hold strangers; the notary has nothing to list."""
    consortium, outcome = private
    lists = {
        party: reply.arrays["plain/tokens"] for _, party, reply in consortium.seen if "plain/tokens" in reply.arrays
    }
    event = outcome.alignment.event
    assert event is not None
    assert outcome.alignment.places() > ROWS
    assert len(lists["notary"]) == 0
    for name in ("hospital", "insurer"):
        assert ROWS < len(lists[name]) <= ROWS + 4 * room(event.variance)
        assert (np.diff(lists[name].astype(np.float64)) >= 0).all()  # sorted: the order of rows is nobody's


def test_the_key_and_the_seeds_are_gone_when_the_run_is(private: tuple[Consortium, Outcome]) -> None:
    consortium, _ = private
    for name in ("hospital", "insurer"):
        left = {path.name for path in (consortium.folder / name / "sessions" / "run-1").iterdir()}
        assert not {"linkage", "shares"} & left


def test_everybody_is_charged_the_whole(private: tuple[Consortium, Outcome]) -> None:
    """Neither a part each nor a sum: a person has a row at every party, and so has the notary's ledger the same."""
    _, outcome = private
    events = [statement.events for statement in outcome.statements]
    assert len(events) == 3
    assert events[0] == events[1] == events[2]
    assert events[0][0]["queries"] == 1  # how many people there are, by party


def test_no_cell_and_no_key_leaves_in_the_clear(private: tuple[Consortium, Outcome]) -> None:
    """Every byte that a party sent, searched for its people's keys and for one-hot rows."""
    consortium, _ = private
    for kind, party, reply in consortium.seen:
        block = b"".join(array.tobytes() for array in reply.arrays.values()) + repr(reply.options).encode()
        assert b"p17" not in block, (kind, party)


def test_neighbouring_tables_differ_in_nothing_but_noisy_counts(tmp_path: Path) -> None:
    """One person more at every party, the same luck: the same kinds of messages, in the same order, of the same form;
    only the counts of people (which are noisy and charged) and what follows from them are one larger."""
    seen = []
    for name, whole in (("without", WHOLE.head(ROWS - 1)), ("with", WHOLE)):
        consortium = Consortium(plan_by_columns(COLUMNS, ROWS), tables_by_columns(whole, COLUMNS), tmp_path / name)
        carried_out(consortium)
        shapes = [
            (kind, party, sorted((key, array.shape) for key, array in reply.arrays.items() if "letter" not in key))
            for kind, party, reply in consortium.seen
            if kind not in ("finish", "hello", "keys")
        ]
        seen.append(shapes)
    fewer, more = seen
    assert [each[:2] for each in fewer] == [each[:2] for each in more]
    unlike = [(a, b) for a, b in zip(fewer, more, strict=True) if a != b]
    assert {a[2][0][0] for a, _ in unlike} <= {"plain/tokens", "sealed"}
    for shapes in seen:  # tables are as large as bins cut from the released counts say: alike at everybody's
        sealed = [each[2][0][1] for each in shapes if each[2] and each[2][0][0] == "sealed"]
        assert len({tuple(sealed[start::3]) for start in range(3)}) == 1
    assert all(b[2][0][1][0] - a[2][0][1][0] == 1 for a, b in unlike if a[2][0][0] == "plain/tokens")
