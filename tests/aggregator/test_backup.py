"""The aggregator's volume travels as one file, and comes back only where nothing is forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest

from aggregator.server.backup import archive_of, put_back
from aggregator.server.reporter import Reporter
from aggregator.server.run_folder import RunFolder, named
from synth.audit_log import FILE, AuditLog
from synth.errors import InputError, NotVerified
from tests.small import plan_of

PLAN = plan_of({"name": "marginals"}, name="copied")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    made = tmp_path / "state"
    folder = RunFolder.of(made, PLAN)
    with folder.taken(PLAN):
        Reporter(PLAN, folder, "7").round(2, 5, {}, 0.5)
    AuditLog(made / FILE, "aggregator").note("run", "anna", plan=PLAN.digest())
    return made


def test_a_lost_volume_comes_back(state: Path, tmp_path: Path) -> None:
    content, new = archive_of(state), tmp_path / "new"
    new.mkdir()
    assert put_back(new, content)["restored"] == ["copied"]
    standing = named(new, "copied").standing
    assert standing is not None
    assert standing.round == 2
    assert not (named(new, "copied").path / "lock").exists()
    assert AuditLog(new / FILE, "").read() == AuditLog(state / FILE, "").read()


def test_what_was_done_since_is_not_forgotten(state: Path) -> None:
    content = archive_of(state)
    AuditLog(state / FILE, "aggregator").note("fetch", "anna", plan=PLAN.digest())
    before = (state / FILE).read_bytes()
    with pytest.raises(NotVerified, match="forget what was done since"):
        put_back(state, content)
    assert (state / FILE).read_bytes() == before


def test_a_run_that_is_there_stays(state: Path) -> None:
    content = archive_of(state)
    with RunFolder.of(state, PLAN).taken(PLAN):
        Reporter(PLAN, RunFolder.of(state, PLAN), "8").round(4, 5, {}, 0.7)
    assert put_back(state, content)["restored"] == []
    standing = named(state, "copied").standing
    assert standing is not None
    assert standing.round == 4


def test_any_bytes_are_no_archive(state: Path) -> None:
    with pytest.raises(InputError, match="no archive"):
        put_back(state, b"bytes")
