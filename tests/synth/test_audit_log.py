"""Who did what: lines that stay, break visibly, and cannot be multiplied or worded by strangers."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import pytest

from synth.audit_log import WHO, AuditLog, caller
from synth.errors import BudgetError, NotVerified, OutputError


@pytest.fixture
def log(tmp_path: Path) -> AuditLog:
    return AuditLog(tmp_path / "audit.jsonl", "north")


def test_lines_are_chained_json(log: AuditLog) -> None:
    log.note("approve", "system:anna", plan="ab")
    log.note("withdraw", "system:ben", plan="ab")
    first, second = map(json.loads, log.path.read_text().splitlines())
    assert (first["number"], first["who"], first["action"], first["plan"], first["side"]) == (
        1,
        "system:anna",
        "approve",
        "ab",
        "north",
    )
    assert second["previous"] == first["hash"]
    assert log.read() == [first, second]
    assert log.path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "tampering",
    [
        lambda lines: [lines[0].replace("anna", "otto"), *lines[1:]],
        lambda lines: lines[1:],
        lambda lines: [lines[1], lines[0], lines[2]],
        lambda lines: [lines[0], lines[2]],
        lambda lines: [*lines, lines[-1]],
        lambda lines: [*lines, "no entry"],
    ],
    ids=["changed", "first cut", "swapped", "middle cut", "repeated", "no entry"],
)
def test_tampering_is_seen(log: AuditLog, tampering: object) -> None:
    for who in ("anna", "ben", "cleo"):
        log.note("approve", who, plan="ab")
    log.path.write_text("\n".join(tampering(log.path.read_text().splitlines())) + "\n")  # type: ignore[operator]
    with pytest.raises(NotVerified):
        log.read()


def test_what_a_power_cut_left_is_cut_off(log: AuditLog) -> None:
    log.note("approve", "anna", plan="a" * 190)
    with log.path.open("ab") as file:
        file.write(b'{"number": 2, "time"')
    log.note("withdraw", "anna", plan="ab")
    assert [line["action"] for line in log.read()] == ["approve", "withdraw"]


def test_what_fails_is_noted_as_such(log: AuditLog) -> None:
    with pytest.raises(BudgetError), log.noted("approve", "anna", plan="ab"):
        raise BudgetError("no")
    assert [(line["action"], line.get("code")) for line in log.read()] == [
        ("approve", None),
        ("approve-failed", "budget-exceeded"),
    ]


def test_nothing_is_done_unnoted(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done: list[int] = []
    with pytest.raises(OutputError), AuditLog(tmp_path / "file" / "audit.jsonl", "north").noted("approve", "anna"):
        done.append(1)
    assert not done


def test_the_same_fact_is_written_once_a_day_even_after_a_restart(log: AuditLog) -> None:
    for _ in range(1000):
        log.note_once_a_day("refuse", "aggregator", kind="hello", code="protocol")
    again = AuditLog(log.path, "north")
    again.note_once_a_day("refuse", "aggregator", kind="hello", code="protocol")
    again.note_once_a_day("refuse", "aggregator", kind="ask", code="protocol")
    assert len(log.read()) == 2


def test_words_are_short_and_printable(log: AuditLog) -> None:
    log.note("approve", "anna\n\x1b[31m" + "x" * 10_000, plan="ab")
    (line,) = log.read()
    assert len(line["who"]) == 200
    assert line["who"].isprintable()


def _note(path: Path, who: str) -> None:
    for _ in range(50):
        AuditLog(path, "north").note("approve", who)


def test_processes_take_turns(log: AuditLog) -> None:
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_note, args=(log.path, f"user-{n}")) for n in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert len(log.read()) == 200


def test_the_caller_is_told_or_known_to_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WHO, "kubernetes:anna")
    assert caller() == "kubernetes:anna"
    monkeypatch.delenv(WHO)
    assert caller().startswith("system:")
