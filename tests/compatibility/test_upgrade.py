"""A deployment of 0.2.0 with a run in the middle, taken over by this version: volumes, ledger, values, charts."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from aggregator.server.backup import archive_of, put_back
from aggregator.server.run_folder import named
from aggregator.server.supervisor import Supervisor
from aggregator.states import RunState
from fed_node import backup
from fed_node.ledger.view import LedgerView
from fed_node.settings import PartySettings, policy_at
from fedsynth.cli import assembled
from synth.audit_log import FILE, AuditLog
from synth.plan import parse_plan
from tests.charts.tools import CHARTS, run_helm

OLD = Path(__file__).parent / "version-0.2.0"
RELEASED, MIDDLE = "loopback", "census-20260706T0300"


@dataclass
class Flower:
    """Takes runs; knows nothing of those of before, as after an upgrade with a new database."""

    submitted: list[dict[str, Any]] = field(default_factory=list)

    def submit(self, plan: dict[str, Any], who: str) -> dict[str, Any]:
        self.submitted.append(plan)
        return {"flower_run": "17"}

    def begun(self) -> list[tuple[str, str]]:
        return []

    def outcome(self, flower_run: str) -> tuple[str, str]:
        return "unknown", ""

    def stop(self, flower_run: str) -> dict[str, Any]:
        return {}


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    return Path(shutil.copytree(OLD / "aggregator", tmp_path / "volume"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return Path(shutil.copytree(OLD / "party-1", tmp_path / "home"))


def test_the_run_in_the_middle_is_taken_up_and_the_released_one_left_alone(volume: Path) -> None:
    flower = Flower()
    supervisor = Supervisor(volume, flower, automatic=True, patience_seconds=60.0)
    supervisor.look()
    (plan,) = flower.submitted
    assert parse_plan(plan).digest() == named(volume, MIDDLE).path.name  # the very plan that parties have reserved for
    standing = named(volume, MIDDLE).standing
    assert standing is not None
    assert (standing.state, standing.resumed) == (RunState.queued, 1)
    before = named(volume, RELEASED).standing
    assert before is not None
    assert before.state is RunState.released


def test_releases_verify_and_are_handed_out(volume: Path) -> None:
    release = named(volume, RELEASED).path / "release"
    certificate, plan = release / "certificate.json", release / "plan.json"
    words = ["verify", "--unsigned", str(certificate), "--plan", str(plan)]
    done = CliRunner().invoke(assembled(["verify"]), words)
    assert done.exit_code == 0, done.output
    assert len(named(volume, RELEASED).archive()) > 10_000


def test_the_audit_log_goes_on_and_the_volume_is_copied_and_put_back(volume: Path, tmp_path: Path) -> None:
    lines = AuditLog(volume / FILE, "aggregator").read()  # the chain holds
    assert [line["action"] for line in lines[:3]] == ["register", "run", "release"]
    AuditLog(volume / FILE, "aggregator").note("register", "an upgrade", parties=[])
    assert len(AuditLog(volume / FILE, "aggregator").read()) == len(lines) + 1
    (tmp_path / "new").mkdir()
    assert sorted(put_back(tmp_path / "new", archive_of(volume))["restored"]) == [MIDDLE, RELEASED]


def test_the_ledger_knows_what_was_spent_and_what_is_reserved(home: Path) -> None:
    view = LedgerView(home / "ledger.sqlite")
    assert view.verify() == len(view.history())
    spent, committed = view.spent().epsilon, view.committed().epsilon
    assert 0 < spent < committed  # the run in the middle is reserved for
    assert spent <= 3.0 + 1e-9
    assert view.automatic_runs() == 1
    view.close()


def test_a_partys_home_is_copied_and_put_back(home: Path, tmp_path: Path) -> None:
    assert PartySettings.load(home).name == "party-1"
    policy = policy_at(home)
    assert policy is not None
    assert policy.maximum_automatic_runs == 100
    about = backup.take(home, tmp_path / "copy.tar.gz", keys=False)
    shutil.rmtree(home)
    home.mkdir()
    assert backup.put_back(tmp_path / "copy.tar.gz", home)[0].head == about.head
    assert not (home / "sessions").exists()  # keys of an epoch are in no copy


@pytest.mark.parametrize("chart", CHARTS)
def test_values_of_before_are_taken_and_nothing_changes_that_cannot(chart: str) -> None:
    """`helm upgrade` fails on a changed selector or claim, and forgets what a renamed object held."""
    words = ["template", "demo", str(CHARTS[chart]), "-f", str(OLD / "values" / f"{chart}.yaml")]
    done = run_helm(*words, "--kube-version", "1.25.0")
    assert done.returncode == 0, done.stderr
    made = {f"{each['kind']}/{each['metadata']['name']}": each for each in yaml.safe_load_all(done.stdout) if each}
    for name, fixed in json.loads((OLD / "objects.json").read_text())[chart].items():
        assert name in made
        for key, value in fixed.items():
            assert made[name]["spec"].get(key) == value, f"{name}: {key}"
