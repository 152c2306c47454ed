"""The guides, walked through on a sandbox: what an operator and three parties type, in order, on one machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from fedsynth.cli import assembled
from fedsynth.documents import read_plan
from fedsynth.operated import SANDBOX
from fedsynth.sandbox.layout import Layout
from fedsynth.sandbox.making import make
from fedsynth.sandbox.processes import Processes, born
from fedsynth.sandbox.programs import Program
from fedsynth.sandbox.running import Sandbox
from synth.errors import InputError

APP = assembled()


def fedsynth(*words: str | Path, typed: str = "") -> Result:
    return CliRunner().invoke(APP, [str(word) for word in words], input=typed)


def done(*words: str | Path, typed: str = "") -> str:
    result = fedsynth(*words, typed=typed)
    assert result.exit_code == 0, (words, result.output, result.exception)
    return result.output


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Layout]:
    folder = tmp_path_factory.mktemp("place") / "sandbox"
    try:
        assert "Connected: north, south, west" in done("sandbox", "up", "--folder", folder)
        yield Layout(folder)
    finally:
        Sandbox(folder).down()


def test_the_guides_can_be_walked_through(layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, digest = layout.plan, read_plan(layout.plan).digest()
    for party in layout.parties:  # the party guide
        assert "fits" in done("node", "check-data", "--home", layout.home(party), "--schema", plan)
        screen = done("node", "approve", plan, "--home", layout.home(party), typed=f"{digest[-8:]}\n")
        assert "What leaves this party" in screen
        assert "Approved" in screen
    monkeypatch.setenv(SANDBOX, str(layout.folder))  # the operator guide
    assert "yes" in done("status")
    assert "three-hospitals is released" in done("run", plan, "--wait")
    done("fetch", "three-hospitals", "--out", tmp_path / "release")
    keys = layout.kits / "keys.yaml"
    assert "Promised" in done("verify", tmp_path / "release" / "certificate.json", "--keys", keys)
    actions = [json.loads(line)["action"] for line in done("audit-log").splitlines()]
    assert actions == ["register", "run", "release", "fetch"]
    ledger = json.loads(done("node", "ledger", "--home", layout.home("north"), "--json"))
    assert ledger["entries"][-1]["kind"] == "finish"
    assert ledger["spent"]["epsilon"] == pytest.approx(0.8725, abs=1e-3)  # the plan's 1 at δ 1e-6, at the policy's 1e-5
    assert "three-hospitals" in done("logs")

    again = fedsynth("run", plan, "--wait")
    assert isinstance(again.exception, InputError)
    assert "was carried out already" in str(again.exception)


def test_a_killed_party_is_brought_back(layout: Layout) -> None:
    said = done("sandbox", "kill", "north", "--folder", layout.folder)
    assert "north/worker" in said
    status = json.loads(done("sandbox", "status", "--json", "--folder", layout.folder))
    assert not any(name.startswith("north/") for name in status["processes"])
    assert "south/worker" in status["processes"]
    done("sandbox", "up", "--folder", layout.folder)
    assert "north/worker" in Sandbox(layout.folder).processes.alive()
    assert fedsynth("sandbox", "kill", "nobody", "--folder", layout.folder).exit_code != 0


def test_down_ends_every_process(layout: Layout) -> None:
    done("sandbox", "down", "--folder", layout.folder)
    assert Sandbox(layout.folder).processes.alive() == []


def test_a_number_that_is_somebody_elses_by_now_is_left_alone(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    processes.start("a/sleeper", Program(["sleep", "60"]))
    note = json.loads(processes.file.read_bytes())
    note["a/sleeper"]["born"] = "another time"
    processes.file.write_text(json.dumps(note))
    assert processes.kill(["a/sleeper"]) == []
    note["a/sleeper"]["born"] = born(note["a/sleeper"]["pid"])
    processes.file.write_text(json.dumps(note))
    assert processes.kill(["a/sleeper"]) == ["a/sleeper"]
    assert processes.alive() == []


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="no sandbox"):
        make(Layout(tmp_path), None, None, None)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_a_plan_without_a_table_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--data"):
        make(Layout(tmp_path / "new"), tmp_path / "plan.yaml", None, None)
    assert not (tmp_path / "new").exists()
