"""A federation in a cluster, made with the commands that people use: provision, install, approve, run, fetch.

Four namespaces: the aggregator's and one for each of three parties. The cluster is the one of KUBECONFIG, or a kind
cluster that is made for the tests and deleted afterwards.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from aggregator.states import Standing
from fedsynth.cluster.api import Cluster
from fedsynth.cluster.errors import ClusterError
from fedsynth.cluster.runs import Aggregator
from synth.plan import Plan

ROOT = Path(__file__).parents[2]
AGGREGATOR = "fed-aggregator"  # its namespace
CLUSTER = "fedsynth-test"
FEDSYNTH = str(Path(sys.executable).parent / "fedsynth")
IMAGES = ("aggregator", "fed-node", "edge")
NODE_IMAGE = os.environ.get("KIND_NODE_IMAGE", "kindest/node:v1.20.2")
TAG = os.environ.get("FEDSYNTH_TAG", "dev")
LONGEST_COMMAND_SECONDS = 900  # loading images into kind on a busy machine
POLICY = {
    "maximum_epsilon_per_run": 4.0,
    "maximum_epsilon_in_total": 40.0,
    "maximum_delta": 1e-4,
    "minimum_rows": 10,
}
LASTING = POLICY | {"maximum_epsilon_in_total": 400.0}  # for many runs


@contextmanager
def a_cluster(images: bool = True) -> Iterator[None]:
    """The cluster of KUBECONFIG, or a kind cluster for the time being, which is given the images."""
    if os.environ.get("KUBECONFIG"):
        yield
        return
    kubeconfig = ROOT / "build" / "kind.kubeconfig"
    kubeconfig.parent.mkdir(exist_ok=True)
    os.environ["KUBECONFIG"] = str(kubeconfig)
    try:
        _create_cluster()
        if images:
            call("kind", "load", "docker-image", *_images(), "--name", CLUSTER)
        yield
    finally:
        call("kind", "delete", "cluster", "--name", CLUSTER)
        del os.environ["KUBECONFIG"]


def _create_cluster() -> None:
    """kind gives a node half a minute to boot, which a busy machine does not always manage: three attempts."""
    words = ["kind", "create", "cluster", "--name", CLUSTER, "--image", NODE_IMAGE, "--wait", "240s"]
    for _ in range(3):
        call("kind", "delete", "cluster", "--name", CLUSTER)  # also what an interrupted session left
        if (done := attempt(*words)).returncode == 0:
            call("kubectl", "label", "node", "--all", "network-policies=enforced")  # the local node image obeys it
            return
    raise AssertionError(done.stderr[-3000:])


def _images() -> list[str]:
    """In one archive they share their layers. The node's is also there as its own CUDA build: only its name counts."""
    call("docker", "tag", f"fedsynth/fed-node:{TAG}", f"fedsynth/fed-node:{TAG}-cuda")
    return [f"fedsynth/{image}:{TAG}" for image in IMAGES] + [f"fedsynth/fed-node:{TAG}-cuda"]


def call(*command: str, stdin: str | None = None, check: bool = True) -> str:
    done = attempt(*command, stdin=stdin)
    assert not check or done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def attempt(*command: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, input=stdin, capture_output=True, text=True, check=False, timeout=LONGEST_COMMAND_SECONDS
    )


def fedsynth(*words: str, stdin: str | None = None, check: bool = True) -> str:
    return call(FEDSYNTH, *words, stdin=stdin, check=check)


class Federation:
    """Kits, namespaces and releases of one test session."""

    def __init__(self, folder: Path, parties: list[str], operator_made: Collection[str] = ()) -> None:
        self.folder, self.parties, self.operator_made = folder, parties, set(operator_made)
        self.kits = folder / "kits"
        self.charts = ROOT / "charts"
        self.images: dict[str, dict[str, Any]] = {
            chart: {"images": {"tag": TAG}} for chart in ("aggregator", "fed-node")
        }  # values
        self.aggregator = Aggregator(Cluster(AGGREGATOR), "aggregator")

    def keys(self, party: str) -> Path:
        return self.folder / "keys" / party

    def namespace(self, party: str) -> str:
        return f"fed-{party}"

    def provision(self, *more: str) -> None:
        """Every party makes its own keys and sends its join file, but for those named with --make-keys."""
        for party in set(self.parties) - self.operator_made:
            join = self.keys(party) / "join.yaml"
            if not join.exists():
                fedsynth("node", "keygen", "--home", str(self.keys(party)), "--name", party)
            more = (*more, "--join", str(join))
        for party in self.operator_made:
            more = (*more, "--make-keys", party)
        document = {
            "name": "test",
            "endpoint": f"aggregator.{AGGREGATOR}.svc:443",
            "parties": [{"name": party} for party in self.parties],
        }
        path = self.folder / "federation.yaml"
        path.write_text(yaml.safe_dump(document))
        fedsynth("provision", str(path), "--out", str(self.kits), *more)

    def install(self, rows: dict[str, bytes], file: str = "rows.csv", **more: Any) -> None:
        """Everybody at once, as institutions would; returns when all parties are connected."""
        with ThreadPoolExecutor(1 + len(rows)) as pool:
            work = [pool.submit(self.install_aggregator)]
            work += [pool.submit(self.install_party, party, each, file, **more) for party, each in rows.items()]
            for each in work:
                each.result()
        self.wait_until_connected(set(rows))

    def install_aggregator(self, **more: Any) -> None:
        done = self._install("aggregator", "aggregator", AGGREGATOR, {"storage": {"size": "1Gi"}} | more)
        assert done.returncode == 0, done.stderr

    def install_party(self, party: str, rows: bytes, name: str = "rows.csv", **more: Any) -> None:
        done = self.try_to_install_party(party, rows, name, **more)
        assert done.returncode == 0, done.stderr

    def try_to_install_party(
        self, party: str, rows: bytes, name: str = "rows.csv", wait_seconds: int = 600, **more: Any
    ) -> subprocess.CompletedProcess[str]:
        namespace = self.namespace(party)
        cluster = Cluster(namespace)
        cluster.ensure_namespace()
        secret = {"kind": "Secret", "metadata": {"name": "rows"}, "data": {name: base64.b64encode(rows).decode()}}
        cluster.put(secret)
        values = {
            "policy": POLICY,
            "data": {"source": {"kind": "csv", "path": f"/data/{name}"}, "volume": {"existingSecret": "rows"}},
            "storage": {"size": "1Gi"},
        }
        whose = ["--accept-operator-keys"] if party in self.operator_made else ["--keys", str(self.keys(party))]
        words = [*whose, "--fingerprints", str(self.kits / "fingerprints.txt")]  # as if they were read out
        return self._install("fed-node", f"parties/{party}", namespace, values | more, wait_seconds, *words)

    def _install(
        self, chart: str, kit: str, namespace: str, values: dict[str, Any], wait_seconds: int = 600, *more: str
    ) -> subprocess.CompletedProcess[str]:
        path = self.folder / f"{namespace}.yaml"
        path.write_text(yaml.safe_dump(self.images[chart] | values))
        words = ["install", chart, "--kit", str(self.kits / kit), "-f", str(path), "-n", namespace, *more]
        return attempt(FEDSYNTH, *words, "--charts", str(self.charts), "--wait-seconds", str(wait_seconds))

    def in_worker(self, party: str, *command: str, stdin: str | None = None, check: bool = True) -> str:
        place = ["-n", self.namespace(party), "deploy/fed-node", "-c", "worker"]
        return call("kubectl", "exec", "-i", *place, "--", *command, stdin=stdin, check=check)

    def approve(self, plan: Plan, parties: list[str] | None = None) -> None:
        """As programs do it: the screen is shown, and the whole digest said."""

        def approve(party: str) -> str:
            words = ["node", "approve", str(self.write_plan(plan)), "--digest", plan.digest()]
            return fedsynth(*words, "--namespace", self.namespace(party))

        with ThreadPoolExecutor() as pool:
            for screen in pool.map(approve, parties or self.parties):
                assert "What leaves this party" in screen

    def ledger(self, party: str) -> dict[str, Any]:
        words = ["fedsynth", "node", "ledger", "--home", "/var/lib/fedsynth", "--json"]
        found: dict[str, Any] = json.loads(self.in_worker(party, *words))
        return found

    def write_plan(self, plan: Plan) -> Path:
        path = self.folder / f"{plan.name}.json"
        path.write_text(json.dumps(plan.model_dump(mode="json", by_alias=True)))
        return path

    def run(self, plan: Plan, *more: str) -> subprocess.CompletedProcess[str]:
        return attempt(FEDSYNTH, "run", str(self.write_plan(plan)), "-n", AGGREGATOR, *more)

    def connected(self) -> set[str]:
        return {node["party"] for node in self.aggregator.status()["nodes"] if node["online"]}

    def wait_until_connected(self, parties: set[str], seconds: float = 600) -> None:
        self.wait_for(lambda: parties <= self.connected(), f"{', '.join(sorted(parties))} connected", seconds)

    def wait_for(self, condition: Callable[[], bool], what: str, seconds: float = 600, pause: float = 1) -> None:
        """Look again and again; a cluster that is just restarting something is looked at later."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                if condition():
                    return
            except ClusterError:
                pass
            assert time.monotonic() < deadline, f"waited {seconds:.0f} s for: {what}"
            time.sleep(pause)

    def standing(self, plan: Plan) -> Standing | None:
        """What a run says of itself."""
        found = self.aggregator.progress(plan.digest())
        return Standing.from_json(found) if found else None

    def state(self, plan: Plan) -> str:
        """What `fedsynth status` says of a run."""
        runs = [run for run in self.aggregator.status()["runs"] if run["digest"] == plan.digest()]
        return str(runs[0]["state"]) if runs else "submitted"

    def remove(self) -> None:
        """Everything that was installed, ledgers included."""
        namespaces = (AGGREGATOR, *map(self.namespace, self.parties))
        call("kubectl", "delete", "namespace", *namespaces, "--ignore-not-found")
