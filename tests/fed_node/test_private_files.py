"""What a party keeps is for its owner alone, whatever the umask was, and whoever made it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from fed_node.ledger.ledger import Ledger
from fed_node.party import Party
from fed_node.process.logs import PrivateFile
from tests.fed_node.two_parties import CheapTraining, World, make_homes, run_all, small_plan

PLAN = small_plan(rounds=1)


@pytest.fixture(autouse=True)
def careless() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_ledger_is_nobody_elses_affair(tmp_path: Path) -> None:
    Ledger(tmp_path / "home" / "ledger.sqlite", "patients", None).close()
    assert mode(tmp_path / "home" / "ledger.sqlite") == 0o600
    assert mode(tmp_path / "home") == 0o700


def test_all_that_a_run_leaves_is_closed_and_what_was_open_is_closed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synth.programme.build", CheapTraining)
    homes = make_homes(tmp_path, PLAN)
    home = homes["party-1"]
    for open_to_all in (home / "ledger.sqlite", home / "approved"):
        open_to_all.chmod(0o755)
    parties = {name: Party(home) for name, home in homes.items()}
    run_all(PLAN, World({name: party.handle for name, party in parties.items()}))
    for party in parties.values():
        party.ledger.close()
    written = [path for path in home.rglob("*") if path.name != "rows.csv"]  # which the institution put there
    assert {path.name for path in written if mode(path) & 0o077} == set()


def test_a_log_stays_closed_when_it_is_rotated(tmp_path: Path) -> None:
    handler = PrivateFile(tmp_path / "party.log", maxBytes=1, backupCount=2)
    handler.doRollover()
    handler.close()
    assert {mode(path) for path in tmp_path.iterdir()} == {0o600}
