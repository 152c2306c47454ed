"""The real charts and images in a real cluster: 1 aggregator and 3 parties in 4 namespaces (`make test-kind`).

The tests are steps of one story and share a federation; each leaves it as the next one needs it. Nothing is asserted
after a fixed time: what takes long is waited for.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from aggregator.states import ENDED
from crypto.keys import IdentityKey
from fedsynth.provision.federation import read_federation
from fedsynth.provision.kits import Meeting, write_party
from synth.certificate.certificate import Certificate
from synth.plan import Plan, parse_plan
from synth.programme import programme
from tests.e2e.chaos import Story
from tests.e2e.faults import BRIEF, chosen
from tests.e2e.federation import AGGREGATOR, FEDSYNTH, POLICY, TAG, Federation, a_cluster, attempt, call, fedsynth
from tests.small import plan_content, plan_of, table

pytestmark = pytest.mark.kind
PARTIES = ["party-1", "party-2", "party-3"]
GPU = "nvidia.com/gpu"
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
DIAL = """
import socket, sys
for address in sys.argv[1:]:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), 3).close()
        print(address)
    except OSError:
        pass
"""
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"
# The brackets keep the shell from finding, and killing, itself.
KILL_THE_RUN = "for each in /proc/[0-9]*; do grep -q flwr-server[a]pp $each/cmdline && kill -9 ${each:6}; done; true"


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Federation]:
    with a_cluster():
        made = Federation(tmp_path_factory.mktemp("federation"), PARTIES, operator_made=["party-3"])
        made.provision()
        try:
            made.install({party: _rows(party) for party in PARTIES})
            yield made
        finally:
            if request.session.testsfailed:
                sys.stderr.write(call("kubectl", "get", "pods", "--all-namespaces", "-o", "wide", check=False))
                sys.stderr.write(call("kubectl", "get", "events", "--all-namespaces", check=False)[-8000:])
            made.remove()


def _rows(party: str) -> bytes:
    return table(200, seed=len(party) + ord(party[-1])).to_csv(index=False).encode()


def _in_party(party: str, script: str, *words: str) -> tuple[int, str]:
    """A Python script where a party's node is, with its network: exit code and everything it printed."""
    place = ["-n", f"fed-{party}", "deploy/fed-node", "-c", "supernode"]
    done = attempt("kubectl", "exec", *place, "--", "python", "-c", script, *words)
    return done.returncode, done.stdout + done.stderr


def test_parties_and_operator_pass_their_preflights(federation: Federation) -> None:
    call("helm", "test", "aggregator", "-n", AGGREGATOR)
    call("helm", "test", "fed-node", "-n", "fed-party-1")
    fedsynth("preflight", "cluster", "-n", AGGREGATOR)


def test_an_approved_plan_is_run_fetched_and_verified(federation: Federation, tmp_path: Path) -> None:
    plan = plan_of({"name": "ctgan", "rounds": 2}, name="ctgan")
    federation.approve(plan)
    done = federation.run(plan, "--wait")
    assert done.returncode == 0, done.stderr
    _check_release(federation, plan, tmp_path)


@pytest.mark.nightly
def test_a_plan_by_columns_is_run_fetched_and_verified(federation: Federation, tmp_path: Path) -> None:
    """Every party's file has all columns and the same two hundred keys; each brings its own columns only."""
    held = dict(zip(PARTIES, (["age", "dose", "ward"], ["sex", "smoker"], ["admitted", "died"]), strict=True))
    parties = [{"name": name, "rows": 200, "columns": columns} for name, columns in held.items()]
    by_columns = {"partition": "columns", "linkage": {"key": "patient"}, "parties": parties, "output": {"rows": 600}}
    assessed = {"assessment": {"pairs": 5}}  # with shares of its own
    plan = parse_plan(plan_content({"name": "marginals"}) | {"name": "columns"} | by_columns | assessed)
    federation.approve(plan)
    done = federation.run(plan, "--wait")
    assert done.returncode == 0, done.stderr
    _check_release(federation, plan, tmp_path)
    certificate = Certificate.model_validate_json((tmp_path / "certificate.json").read_bytes())
    assert certificate.linkage is not None
    assert certificate.claim.relation == "add or remove one person, with a row at every party"


def test_a_table_that_its_gate_withholds_is_fetched_only_despite_it(federation: Federation, tmp_path: Path) -> None:
    strict = {"assessment": {"share": 0.2, "pairs": 5}, "gate": {"minimum_auroc": 1.0}}
    plan = plan_of({"name": "marginals"}, name="marginals", **strict)
    federation.approve(plan)
    done = federation.run(plan, "--wait")
    assert done.returncode == 10, done.stderr
    papers = attempt(FEDSYNTH, "fetch", plan.name, "--out", str(tmp_path / "papers"), "-n", AGGREGATOR)
    assert papers.returncode == 10
    assert "minimum_auroc 1" in (tmp_path / "papers" / "WITHHELD.txt").read_text()
    assert not (tmp_path / "papers" / "synthetic.csv").exists()
    _check_release(federation, plan, tmp_path / "all", "--despite-gate")


def _check_release(federation: Federation, plan: Plan, out: Path, *more: str) -> None:
    fedsynth("fetch", plan.name, "--out", str(out), "-n", AGGREGATOR, *more)
    certificate = Certificate.model_validate_json((out / "certificate.json").read_bytes())
    assert certificate.plan_digest == plan.digest()
    assert {signed.statement.party for signed in certificate.statements} == set(PARTIES)
    assert (out / "synthetic.csv").read_text().count("\n") == 601
    told = fedsynth("verify", str(out / "certificate.json"), "--keys", str(federation.kits / "keys.yaml"))
    assert "operator made the keys of party-3," in " ".join(told.split())  # and of nobody else


def test_a_person_at_a_terminal_approves_in_the_cluster(federation: Federation) -> None:
    plan = plan_of({"name": "marginals"}, name="typed")
    words = ["node", "approve", str(federation.write_plan(plan)), "-n", "fed-party-1"]
    declined = subprocess.run([FEDSYNTH, *words], input="y\n", capture_output=True, text=True, timeout=300)
    assert declined.returncode == 1, declined.stderr
    approved = subprocess.run(
        [FEDSYNTH, *words], input=plan.digest()[-8:] + "\n", capture_output=True, text=True, timeout=300
    )
    assert approved.returncode == 0, approved.stderr
    assert "Your budget: ε = 40" in approved.stdout
    federation.in_worker("party-1", "fedsynth", "node", "withdraw", plan.digest(), "--home", "/var/lib/fedsynth")


def test_the_worker_has_no_network_and_nobody_else_its_administrators_socket(federation: Federation) -> None:
    said = call("kubectl", "logs", "-n", "fed-party-1", "deploy/fed-node", "-c", "worker").splitlines()
    ready = next(line for line in map(json.loads, said) if line["message"] == "ready")
    assert ready["network"] == "none: only Unix sockets"
    place = ["-n", "fed-party-1", "deploy/fed-node"]
    for container, there in (("worker", True), ("tasks", False), ("supernode", False)):
        seen = attempt(
            "kubectl", "exec", *place, "-c", container, "--", "test", "-e", "/run/administration/worker.sock"
        )
        assert (seen.returncode == 0) is there
    approve = "import sys; from pathlib import Path; from fed_node.process.worker_client import ask_worker\n"
    approve += (
        "from fed_node.process.frames import Request; ask_worker(Path(sys.argv[1]), Request('administrator/approve'))"
    )
    script = ["python", "-c", approve, "/run/fedsynth/worker.sock"]
    done = attempt("kubectl", "exec", *place, "-c", "tasks", "--", *script)
    assert done.returncode != 0
    assert "WorkerRefused" in done.stderr


def test_control_is_out_of_a_partys_reach(federation: Federation) -> None:
    _, printed = _in_party("party-1", CONTROL_FROM_A_PARTY, f"aggregator.{AGGREGATOR}.svc")
    lines = dict(line.split() for line in printed.splitlines())
    assert lines.pop("/health") == "200"
    assert set(lines.values()) == {"404"}


def test_the_operators_door_wants_a_certificate(federation: Federation) -> None:
    """Tried from inside the release: from a party the policy lets nothing through to be asked."""
    script = "import ssl, sys, urllib.request\ncontext = ssl._create_unverified_context()\n"
    script += "print(urllib.request.urlopen(sys.argv[1], b'', context=context).status)"
    place = ["-n", AGGREGATOR, "deploy/aggregator", "-c", "run"]
    done = attempt(
        "kubectl", "exec", *place, "--", "python", "-c", script, "https://127.0.0.1:8444/v1/control/list-runs"
    )
    assert done.returncode != 0
    assert "400" in done.stderr


def test_a_node_reaches_the_aggregators_edge_and_nothing_else(federation: Federation) -> None:
    _require_enforcement()
    aggregator, other = _address(AGGREGATOR, "aggregator"), _address("fed-party-2", "fed-node")
    forbidden = {f"{aggregator}:{port}" for port in (8444, 8445, 9090, 8000)} | {f"{other}:9094", f"{other}:9090"}
    forbidden |= {"kubernetes.default.svc:443", "1.1.1.1:443", f"aggregator-control.{AGGREGATOR}.svc:8444"}
    reached = _reached("fed-party-1", "deploy/fed-node", "supernode", [*forbidden, f"aggregator.{AGGREGATOR}.svc:443"])
    assert reached == {f"aggregator.{AGGREGATOR}.svc:443"}


def test_a_strange_pod_beside_a_party_reaches_neither_it_nor_the_aggregators_private_doors(
    federation: Federation,
) -> None:
    _require_enforcement()
    aggregator, node = _address(AGGREGATOR, "aggregator"), _address("fed-party-1", "fed-node")
    doors = [f"{aggregator}:{port}" for port in (8444, 8445, 9090, 8000)] + [f"{node}:9094", f"{node}:9090"]
    with _strange_pod("fed-party-1") as pod:
        assert _reached("fed-party-1", pod, "probe", [*doors, f"aggregator.{AGGREGATOR}.svc:443"]) == {
            f"aggregator.{AGGREGATOR}.svc:443"  # the public door, where a stranger is told 403
        }


def test_no_pod_of_a_node_has_a_token_of_the_api_server(federation: Federation) -> None:
    for container in ("supernode", "tasks", "worker"):
        place = ["-n", "fed-party-1", "deploy/fed-node", "-c", container]
        assert attempt("kubectl", "exec", *place, "--", "test", "-e", TOKEN).returncode == 1


def _require_enforcement() -> None:
    if os.environ.get("FEDSYNTH_NO_POLICIES"):
        pytest.skip("told by FEDSYNTH_NO_POLICIES that nothing enforces network policies here")


def _address(namespace: str, name: str) -> str:
    labels = ["-n", namespace, "-l", f"app.kubernetes.io/name={name}", "--field-selector=status.phase=Running"]
    pods = json.loads(call("kubectl", "get", "pods", *labels, "-o", "json"))["items"]
    return str(
        next(pod["status"]["podIP"] for pod in pods if "app.kubernetes.io/component" in pod["metadata"]["labels"])
    )


def _reached(namespace: str, pod: str, container: str, addresses: list[str]) -> set[str]:
    """Which of these addresses a connection can be made to from there."""
    done = call("kubectl", "exec", "-n", namespace, pod, "-c", container, "--", "python", "-c", DIAL, *addresses)
    return set(done.split())


@contextmanager
def _strange_pod(namespace: str) -> Iterator[str]:
    image = f"fedsynth/fed-node:{TAG}"
    container = {"name": "probe", "image": image, "command": ["sleep", "600"]}
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "stranger", "namespace": namespace},
        "spec": {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 0},
    }
    call("kubectl", "apply", "-f", "-", stdin=json.dumps(manifest))
    try:
        call("kubectl", "wait", "-n", namespace, "--for=condition=Ready", "pod/stranger", "--timeout=180s")
        yield "stranger"
    finally:
        call("kubectl", "delete", "pod", "stranger", "-n", namespace, "--force", "--grace-period=0", check=False)


def test_a_missing_approval_is_told_to_the_operator(federation: Federation) -> None:
    plan = plan_of({"name": "marginals"}, name="unapproved")
    federation.approve(plan, PARTIES[:2])
    told = federation.run(plan, "--wait")
    assert told.returncode == 9
    assert "party-3" in told.stderr
    assert "plan-not-approved" in told.stderr


def test_an_upgrade_and_a_rollback_keep_the_ledger_and_a_policy_is_told(federation: Federation) -> None:
    before = federation.ledger("party-3")
    plan = plan_of({"name": "marginals"}, name="too-much")  # ε = 3
    strict = POLICY | {"maximum_epsilon_per_run": 1.0, "auto_approve": [plan.table.digest()]}
    federation.install_party("party-3", _rows("party-3"), policy=strict)
    assert federation.ledger("party-3") == before
    federation.approve(plan, PARTIES[:2])
    federation.wait_until_connected(set(PARTIES))
    told = federation.run(plan, "--wait")
    assert told.returncode == 9
    assert "party-3" in told.stderr
    assert "policy-refused" in told.stderr
    kept = federation.ledger("party-3")
    call("helm", "rollback", "fed-node", "-n", "fed-party-3", "--wait", "--timeout", "300s")
    assert federation.ledger("party-3") == kept
    federation.approve(plan, ["party-3"])  # the policy of before allows it
    federation.wait_until_connected(set(PARTIES))


def test_a_stranger_is_refused(federation: Federation) -> None:
    stranger = Federation(federation.folder / "stranger", ["stranger"])
    stranger.folder.mkdir()
    stranger.provision()
    kit, keys = stranger.kits / "parties" / "stranger", stranger.kits / "authority" / "federation.key"
    genuine = (federation.kits / "parties" / "party-1" / "ca.crt").read_bytes()
    document = read_federation(stranger.folder / "federation.yaml")
    identities = yaml.safe_load((kit / "keys.yaml").read_text())
    meeting = Meeting(document, genuine, IdentityKey.from_pem(keys.read_bytes()), identities, identities)
    write_party(kit, "stranger", meeting, None)  # a kit of its own making, for the genuine endpoint
    page = (kit / "fingerprints.txt").read_text()
    (stranger.kits / "fingerprints.txt").write_text(page)
    stranger.try_to_install_party("stranger", _rows("stranger"), wait_seconds=5)
    place = ["-n", "fed-stranger", "deploy/fed-node", "-c", "supernode"]
    refused = "403 Forbidden"  # by the edge, which asks for a registered key before it reads anything
    federation.wait_for(lambda: refused in call("kubectl", "logs", *place, check=False), "a refusal")
    assert "stranger" not in federation.connected()
    fedsynth("uninstall", "fed-node", "-n", "fed-stranger")


@pytest.mark.parametrize(
    "victim",
    ["node", "superlink", *(pytest.param(each, marks=pytest.mark.nightly) for each in ("aggregator", "run"))],
)
def test_a_run_heals_by_itself_after_a_kill_and_is_charged_once(federation: Federation, victim: str) -> None:
    plan = plan_of({"name": "ctgan", "rounds": 15}, name=f"kill-{victim}")
    federation.approve(plan)
    federation.wait_until_connected(set(PARTIES))
    assert federation.run(plan).returncode == 0
    federation.wait_for(lambda: _round(federation, plan) >= 1, "the first round")
    assert _round(federation, plan) < 10  # and of its end it is far
    _kill(victim)
    federation.wait_for(lambda: federation.state(plan) in ENDED, "the run's end", pause=5)
    assert federation.state(plan) == "released", federation.standing(plan)
    for party in PARTIES:
        entries = federation.ledger(party)["entries"]
        charges = [each for each in entries if each["kind"] == "charge" and each["plan_digest"] == plan.digest()]
        assert len(charges) == programme(plan).asks


@pytest.mark.nightly
def test_a_run_is_released_whatever_happens_to_it(federation: Federation) -> None:
    """`make test-chaos`, shortened: faults that heal quickly, in an order that a seed decides."""
    story = Story(federation, lambda name: plan_of({"name": "ctgan", "rounds": 12}, name=name))
    federation.wait_until_connected(set(PARTIES))
    calm = story.epsilon(story.started("calm"))
    story.meet(chosen(1, len(BRIEF), PARTIES, BRIEF), "brief-chaos", calm)
    assert all(story.named)


def _round(federation: Federation, plan: Plan) -> int:
    progress = federation.aggregator.progress(plan.digest())
    return int(progress["round"]) if progress else 0


def _kill(victim: str) -> None:
    match victim:
        case "node":
            _delete_pod("fed-party-2", "fed-node")
        case "aggregator":  # SuperLink, run and edge at once
            _delete_pod(AGGREGATOR, "aggregator")
        case "superlink":  # its container restarts; the run's process lives on and waits
            call("kubectl", "exec", "-n", AGGREGATOR, "deploy/aggregator", "-c", "superlink", "--", *_bash("kill 1"))
        case "run":
            call("kubectl", "exec", "-n", AGGREGATOR, "deploy/aggregator", "-c", "run", "--", *_bash(KILL_THE_RUN))


def _bash(script: str) -> list[str]:
    return ["/bin/bash", "-c", script]


def _delete_pod(namespace: str, name: str) -> None:
    labels = f"app.kubernetes.io/name={name}"
    call("kubectl", "delete", "pod", "-n", namespace, "-l", labels, "--force", "--grace-period=0")


@pytest.mark.nightly
def test_a_renewed_certificate_and_an_upgrade_keep_register_and_releases(federation: Federation) -> None:
    before = {run["digest"]: run["state"] for run in federation.aggregator.status()["runs"]}
    federation.provision("--rotate", "server", "--rotate", "control")
    federation.install_aggregator(run={"threads": 2})
    federation.wait_until_connected(set(PARTIES))
    assert {run["digest"]: run["state"] for run in federation.aggregator.status()["runs"]} == before
    call("helm", "test", "fed-node", "-n", "fed-party-1")


@pytest.mark.nightly
def test_a_gpu_that_nobody_offers_is_said_and_one_that_is_offered_is_used(federation: Federation) -> None:
    if not _gpus():
        told = federation.try_to_install_party("party-3", _rows("party-3"), wait_seconds=45, gpu={"enabled": True})
        assert told.returncode == 8
        assert "GPU that no node offers" in told.stderr
        assert attempt(FEDSYNTH, "preflight", "cluster", "-n", "fed-party-3", "--gpu", GPU).returncode == 4
        _offer_a_gpu()
    federation.install_party("party-3", _rows("party-3"), gpu={"enabled": True, "device": "cpu"})  # none is behind it
    assert attempt(FEDSYNTH, "preflight", "cluster", "-n", "fed-party-3", "--gpu", GPU).returncode == 0
    federation.wait_until_connected(set(PARTIES))
    federation.install_party("party-3", _rows("party-3"))


def _gpus() -> bool:
    nodes = json.loads(call("kubectl", "get", "nodes", "-o", "json"))["items"]
    return any(GPU in node["status"]["allocatable"] for node in nodes)


def _offer_a_gpu() -> None:
    """As a device plugin would, but for the device."""
    node = call("kubectl", "get", "nodes", "-o", "name").split()[0]
    patch = json.dumps({"status": {"capacity": {GPU: "1"}}})
    call("kubectl", "patch", node, "--subresource=status", "--type=merge", "-p", patch)


@pytest.mark.nightly
def test_uninstalling_keeps_the_ledger(federation: Federation) -> None:
    before = federation.ledger("party-1")
    fedsynth("uninstall", "fed-node", "-n", "fed-party-1")
    assert "fed-node-home" in call("kubectl", "get", "pvc", "-n", "fed-party-1")
    federation.install_party("party-1", _rows("party-1"))
    assert federation.ledger("party-1") == before


@pytest.mark.nightly
def test_a_revoked_party_is_shut_out(federation: Federation) -> None:
    federation.provision("--revoke", "party-2")
    federation.install_aggregator()
    parties = {node["party"] for node in federation.aggregator.status()["nodes"]}
    assert parties == {"party-1", "party-3"}
