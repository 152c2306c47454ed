"""A federation over Flower's own servers, on loopback: TLS, node authentication, worker, tasks, ServerApp, release."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aggregator.server.control import carry_out
from aggregator.server.snapshot import STATUS, Snapshot
from fedsynth.cli import assembled
from fedsynth.documents import write_yaml
from fedsynth.keyring import with_retired
from fedsynth.provision.party_keys import new_keys
from synth.audit_log import FILE, AuditLog
from synth.certificate.certificate import Certificate
from tests.e2e.loopback import Deployment
from tests.small import plan_of

POLICY = {
    "maximum_epsilon_per_run": 3.0,
    "maximum_epsilon_in_total": 9.0,
    "maximum_delta": 1e-4,
    "minimum_rows": 10,
    "auto_approve": [plan_of({"name": "marginals"}).table.digest()],  # for runs by the clock
}


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    plan = plan_of({"name": "marginals"}, name="loopback")
    with Deployment(tmp_path_factory.mktemp("deployment"), plan, 200, POLICY) as running:
        running.submit()
        yield running


def test_a_plan_becomes_a_release(deployment: Deployment) -> None:
    progress = deployment.wait("released")
    release = deployment.state / "runs" / deployment.plan.digest() / "release"
    certificate = Certificate.model_validate_json((release / "certificate.json").read_bytes())
    assert certificate.plan_digest == deployment.plan.digest()
    assert not certificate.simulated
    assert len(certificate.statements) == 3
    assert certificate.signature is not None
    assert certificate.signature.public_key == deployment.identity.identity.public.hex()
    assert certificate.claim.epsilon is not None
    assert certificate.claim.epsilon <= 3.0
    assert progress["epsilon"] == pytest.approx(certificate.claim.epsilon)
    assert (release / "synthetic.csv").read_text().count("\n") == 601  # header and as many rows as were declared


def test_who_ran_and_fetched_is_in_the_audit_log(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    deployment.wait("released")
    monkeypatch.setenv("FEDSYNTH_STATE", str(deployment.state))
    monkeypatch.setenv("FEDSYNTH_CONTROL", f"localhost:{deployment.port}")
    monkeypatch.setenv("FEDSYNTH_CONTROL_FILES", str(deployment.certificates))
    monkeypatch.setenv("FEDSYNTH_WHO", "kubernetes:anna")
    carry_out(["fetch", "loopback"])
    lines = AuditLog(deployment.state / FILE, "").read()
    assert [line["action"] for line in lines[:4]] == ["register", "run", "release", "fetch"]
    assert [name.split()[0] for name in lines[0]["admitted"]] == ["party-1", "party-2", "party-3"]
    assert lines[1]["who"].startswith("system:")  # who submitted: the fixture
    assert lines[1]["plan"] == lines[2]["plan"] == lines[3]["plan"] == deployment.plan.digest()
    assert lines[3]["who"] == "kubernetes:anna"
    assert str(carry_out(["audit-log"])).count("\n") == len(lines) - 1


def test_monitoring_sees_runs_and_parties(deployment: Deployment) -> None:
    deployment.wait("released")
    Snapshot(deployment.folder / "now.prom", deployment.control, deployment.state).write()
    lines = dict(line.rsplit(" ", 1) for line in (deployment.folder / "now.prom").read_text().splitlines())
    labels = f'plan="loopback",digest="{deployment.plan.digest()[:12]}"'
    assert lines[f'fedsynth_run_state{{{labels},state="released"}}'] == "1"
    assert float(lines[f"fedsynth_run_epsilon{{{labels}}}"]) > 0
    status = json.loads((deployment.folder / STATUS).read_bytes())
    assert [run["state"] for run in status["runs"]] == ["released"]
    assert lines['fedsynth_party_connected{party="party-1"}'] == "1"
    assert "fedsynth_up 1" in (deployment.folder / "metrics.prom").read_text()  # the runner's own


def test_a_released_plan_is_not_carried_out_again(deployment: Deployment) -> None:
    deployment.wait("released")
    again = deployment.submit()
    status, details = deployment.wait_for_end(again["flower_run"])
    assert status == "finished:failed"
    assert "was carried out and released" in details
    assert deployment.progress()["state"] == "released"


def test_a_node_that_nobody_registered_is_refused(deployment: Deployment) -> None:
    deployment.keys["stranger"] = new_keys()
    deployment.make_home("stranger")
    deployment.start_party("stranger")
    deployment.wait_for_log("supernode stranger", "Failed to activate SuperNode")
    assert {node["party"] for node in deployment.control.nodes()} == {"party-1", "party-2", "party-3"}


@pytest.mark.slow
def test_every_key_is_rotated_and_a_run_by_the_clock_follows(
    deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's certificate, the aggregator's identity, and both keys of one party, between two runs."""
    deployment.wait("released")
    _write_keys(deployment, tmp_path)
    deployment.rotate("party-1")
    (tmp_path / "plan.yaml").write_text(
        write_yaml(plan_of({"name": "marginals"}, name="census").model_dump(mode="json", by_alias=True))
    )
    (tmp_path / "who").write_text("schedule:monthly")
    monkeypatch.setenv("FEDSYNTH_STATE", str(deployment.state))
    monkeypatch.setenv("FEDSYNTH_CONTROL", f"localhost:{deployment.port}")
    monkeypatch.setenv("FEDSYNTH_CONTROL_FILES", str(deployment.certificates))
    monkeypatch.setenv("FEDSYNTH_JOB", "aggregator-at-monthly-29721780")
    word = carry_out(["submit-scheduled", str(tmp_path / "plan.yaml")])
    assert isinstance(word, dict)
    assert word["plan"] == "census-20260706T0300"
    deployment.wait("released", digest=word["digest"])
    _write_keys(deployment, tmp_path)
    for digest in (deployment.plan.digest(), word["digest"]):
        certificate = deployment.state / "runs" / digest / "release" / "certificate.json"
        done = CliRunner().invoke(
            assembled(["verify"]), ["verify", str(certificate), "--keys", str(tmp_path / "keys.yaml")]
        )
        assert done.exit_code == 0, done.output
    lines = AuditLog(deployment.state / FILE, "").read()
    assert "schedule:monthly" in [line["who"] for line in lines if line["action"] == "run"]


def _write_keys(deployment: Deployment, folder: Path) -> None:
    """keys.yaml as `fedsynth provision` keeps it: what was rotated away stays, with the time of that."""
    present = {name: each["identity"] for name, each in deployment.register.items()}
    present["aggregator"] = deployment.identity.identity.to_text()
    content = with_retired(folder / "keys.yaml", present, dt.datetime.now(dt.UTC))
    (folder / "keys.yaml").write_text(write_yaml(content))
