"""The real charts and images in a real cluster: 1 aggregator and 3 parties in 4 namespaces (`make test-kind`).

The tests are steps of one story and share a federation; each leaves it as the next one needs it.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fedsynth.cluster.api import Cluster
from fedsynth.cluster.errors import ClusterError
from fedsynth.cluster.pods import trouble
from synth.certificate import Certificate
from tests.e2e.federation import AGGREGATOR, Federation, a_cluster, call, fedsynth
from tests.small import plan_of, table

pytestmark = pytest.mark.kind
PARTIES = ["party-1", "party-2", "party-3"]
CONTROL_FROM_A_PARTY = """
import ssl, sys, urllib.error, urllib.request
context = ssl.create_default_context(cafile="/etc/fedsynth/given/ca.crt")
for path in ("/v1/control/list-runs", "/v1/runtime/acquire-task", "/v1/fleet/../control/list-runs", "/docs", "/health"):
    body = b"" if "v1" in path else None
    try:
        print(path, urllib.request.urlopen(f"https://{sys.argv[1]}{path}", body, context=context).status)
    except urllib.error.HTTPError as error:
        print(path, error.code)
"""


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    with a_cluster():
        made = Federation(tmp_path_factory.mktemp("federation"), PARTIES)
        made.provision()
        made.install_aggregator()
        for number, party in enumerate(PARTIES):
            made.install_party(party, _rows(number))
        made.wait_until_connected(set(PARTIES))
        yield made


def _rows(number: int) -> bytes:
    return table(200, seed=number).to_csv(index=False).encode()


def test_parties_and_operator_pass_their_preflights(federation: Federation) -> None:
    call("helm", "test", "aggregator", "-n", AGGREGATOR)
    call("helm", "test", "fed-node", "-n", "fed-party-1")
    fedsynth("preflight", "cluster", "-n", AGGREGATOR)


def test_an_approved_plan_is_run_fetched_and_verified(federation: Federation, tmp_path: Path) -> None:
    plan = plan_of({"name": "marginals"}, name="marginals")
    federation.approve(plan)
    federation.run(plan, "--wait")
    fedsynth("fetch", plan.name, "--out", str(tmp_path), "-n", AGGREGATOR)
    certificate = Certificate.model_validate_json((tmp_path / "certificate.json").read_bytes())
    assert certificate.plan_digest == plan.digest()
    assert {signed.statement.party for signed in certificate.statements} == set(PARTIES)
    assert (tmp_path / "synthetic.csv").read_text().count("\n") == 601
    fedsynth("verify", str(tmp_path / "certificate.json"))


def test_control_is_out_of_a_partys_reach(federation: Federation) -> None:
    place = ["-n", "fed-party-1", "deploy/fed-node", "-c", "supernode"]
    words = ["python", "-c", CONTROL_FROM_A_PARTY, f"aggregator.{AGGREGATOR}.svc"]
    lines = dict(line.split() for line in call("kubectl", "exec", *place, "--", *words).splitlines())
    assert lines.pop("/health") == "200"
    assert set(lines.values()) == {"404"}


def test_the_operators_door_wants_a_certificate(federation: Federation) -> None:
    script = "import ssl, sys, urllib.request\ncontext = ssl._create_unverified_context()\n"
    script += "print(urllib.request.urlopen(sys.argv[1], b'', context=context).status)"
    place = ["-n", "fed-party-1", "deploy/fed-node", "-c", "supernode"]
    url = f"https://aggregator-control.{AGGREGATOR}.svc:8444/v1/control/list-runs"
    done = subprocess.run(
        ["kubectl", "exec", *place, "--", "python", "-c", script, url], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "400" in done.stderr


def test_a_refusal_is_told_to_the_operator(federation: Federation) -> None:
    plan = plan_of({"name": "marginals"}, name="unapproved")
    federation.approve(plan, PARTIES[:2])
    told = subprocess.run(
        ["fedsynth", "run", str(federation.write_plan(plan)), "-n", AGGREGATOR, "--wait"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 9
    assert "party-3" in told.stderr
    assert "plan-not-approved" in told.stderr


def test_a_stranger_is_refused(federation: Federation) -> None:
    stranger = Federation(federation.folder / "stranger", ["stranger"])
    stranger.folder.mkdir()
    stranger.provision()
    kit = stranger.kits / "parties" / "stranger"
    genuine = (federation.kits / "parties" / "party-1" / "ca.crt").read_text()
    values = json.dumps({"aggregator": {"endpoint": f"aggregator.{AGGREGATOR}.svc:443", "ca": genuine}})
    (kit / "values.yaml").write_text(json.dumps(json.loads(values) | {"party": {"name": "stranger", "peers": {}}}))
    stranger.install_party("stranger", _rows(9))
    deadline = time.monotonic() + 90
    log = ""
    while "Failed to activate SuperNode" not in log and time.monotonic() < deadline:
        log = call("kubectl", "logs", "-n", "fed-stranger", "deploy/fed-node", "-c", "supernode")
        time.sleep(2)
    assert "Failed to activate SuperNode" in log
    assert "stranger" not in federation.connected()
    fedsynth("uninstall", "fed-node", "-n", "fed-stranger")


@pytest.mark.parametrize("victim", ["node", "superlink", "aggregator"])
def test_a_run_outlives_a_kill_and_is_charged_once(federation: Federation, victim: str) -> None:
    plan = plan_of({"name": "ctgan", "rounds": 6}, name=f"kill-{victim}")
    federation.approve(plan)
    federation.wait_until_connected(set(PARTIES))
    federation.run(plan)
    _wait_for_round(federation, 1, plan.digest())
    if victim == "superlink":  # its container restarts; the run's process lives on and waits
        place = ["-n", AGGREGATOR, "deploy/aggregator", "-c", "superlink"]
        call("kubectl", "exec", *place, "--", "/bin/bash", "-c", "kill 1")
    else:
        namespace, name = ("fed-party-2", "fed-node") if victim == "node" else (AGGREGATOR, "aggregator")
        labels = f"app.kubernetes.io/name={name}"
        call("kubectl", "delete", "pod", "-n", namespace, "-l", labels, "--force", "--grace-period=0")
    state = _wait_for_end(federation, plan.name)
    if state != "finished":
        federation.wait_until_connected(set(PARTIES))
        fedsynth("resume", plan.name, "--wait", "-n", AGGREGATOR)
    for party in PARTIES:
        entries = federation.ledger(party)["entries"]
        charges = [each for each in entries if each["kind"] == "charge" and each["plan_digest"] == plan.digest()]
        assert len(charges) == sum(plan.planned_asks.values())


def test_an_upgrade_keeps_what_was_spent(federation: Federation) -> None:
    before = federation.ledger("party-1")
    federation.install_party("party-1", _rows(0), worker={"threads": 2})
    assert federation.ledger("party-1") == before


def test_a_gpu_that_nobody_offers_is_said(federation: Federation) -> None:
    federation.install_party("party-3", _rows(2), wait=False, gpu={"enabled": True})
    pods = Cluster("fed-party-3").pods("app.kubernetes.io/name=fed-node")
    told = [trouble(pod) for pod in pods if pod.status.phase == "Pending"]
    assert any(each and "GPU that no node offers" in each for each in told), told
    federation.install_party("party-3", _rows(2))


def test_uninstalling_keeps_the_ledger(federation: Federation) -> None:
    before = federation.ledger("party-1")
    fedsynth("uninstall", "fed-node", "-n", "fed-party-1")
    assert "fed-node-home" in call("kubectl", "get", "pvc", "-n", "fed-party-1")
    federation.install_party("party-1", _rows(0))
    assert federation.ledger("party-1") == before


def _wait_for_round(federation: Federation, number: int, digest: str, seconds: float = 600) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        progress = federation.aggregator.progress(digest)
        if progress is not None and (progress["round"] >= number or progress["state"] != "running"):
            return
        time.sleep(1)
    raise AssertionError(f"round {number} was not reached")


def _wait_for_end(federation: Federation, name: str, seconds: float = 600) -> str:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            runs = [run for run in federation.aggregator.status()["runs"] if run["plan"] == name]
            if runs and runs[0]["state"] != "running":
                return str(runs[0]["state"])
        except ClusterError:
            pass
        time.sleep(2)
    raise AssertionError(f"{name} did not end")
