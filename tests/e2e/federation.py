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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from fedsynth.cluster.api import Cluster
from fedsynth.cluster.runs import Aggregator
from synth.plan import Plan

ROOT = Path(__file__).parents[2]
AGGREGATOR = "fed-aggregator"  # its namespace
IMAGES = ("aggregator", "fed-node", "edge")
NODE_IMAGE = os.environ.get("KIND_NODE_IMAGE", "kindest/node:v1.20.2")
TAG = os.environ.get("FEDSYNTH_TAG", "dev")
POLICY = {
    "maximum_epsilon_per_run": 4.0,
    "maximum_epsilon_in_total": 20.0,
    "maximum_delta": 1e-4,
    "minimum_rows": 10,
}


@contextmanager
def a_cluster() -> Iterator[None]:
    """The cluster of KUBECONFIG, or a kind cluster for the time being."""
    if os.environ.get("KUBECONFIG"):
        yield
        return
    kubeconfig = ROOT / "build" / "kind.kubeconfig"
    kubeconfig.parent.mkdir(exist_ok=True)
    os.environ["KUBECONFIG"] = str(kubeconfig)
    call("kind", "create", "cluster", "--name", "fedsynth-test", "--image", NODE_IMAGE, "--wait", "240s")
    try:
        for image in IMAGES:
            call("kind", "load", "docker-image", f"fedsynth/{image}:{TAG}", "--name", "fedsynth-test")
        yield
    finally:
        call("kind", "delete", "cluster", "--name", "fedsynth-test")
        del os.environ["KUBECONFIG"]


def call(*command: str, stdin: str | None = None, check: bool = True) -> str:
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def fedsynth(*words: str, stdin: str | None = None, check: bool = True) -> str:
    return call(str(Path(sys.executable).parent / "fedsynth"), *words, stdin=stdin, check=check)


class Federation:
    """Kits, namespaces and releases of one test session."""

    def __init__(self, folder: Path, parties: list[str]) -> None:
        self.folder, self.parties = folder, parties
        self.kits = folder / "kits"
        self.aggregator = Aggregator(Cluster(AGGREGATOR), "aggregator")

    def namespace(self, party: str) -> str:
        return f"fed-{party}"

    def provision(self, *more: str) -> None:
        document = {
            "name": "test",
            "endpoint": f"aggregator.{AGGREGATOR}.svc:443",
            "parties": [{"name": party} for party in self.parties],
        }
        path = self.folder / "federation.yaml"
        path.write_text(yaml.safe_dump(document))
        fedsynth("provision", str(path), "--out", str(self.kits), *more)

    def install_aggregator(self, **more: Any) -> None:
        self._install("aggregator", "aggregator", AGGREGATOR, {"storage": {"size": "1Gi"}} | more)

    def install_party(self, party: str, rows: bytes, name: str = "rows.csv", wait: bool = True, **more: Any) -> None:
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
        self._install("fed-node", f"parties/{party}", namespace, values | more, wait)

    def _install(self, chart: str, kit: str, namespace: str, values: dict[str, Any], wait: bool = True) -> None:
        path = self.folder / f"{namespace}.yaml"
        path.write_text(yaml.safe_dump({"images": {"tag": TAG}} | values))
        words = ["install", chart, "--kit", str(self.kits / kit), "-f", str(path), "-n", namespace]
        fedsynth(*words, "--charts", str(ROOT / "charts"), "--wait-seconds", "300" if wait else "5", check=wait)

    def in_worker(self, party: str, *command: str, stdin: str | None = None, check: bool = True) -> str:
        place = ["-n", self.namespace(party), "deploy/fed-node", "-c", "worker"]
        return call("kubectl", "exec", "-i", *place, "--", *command, stdin=stdin, check=check)

    def approve(self, plan: Plan, parties: list[str] | None = None) -> None:
        text = json.dumps(plan.model_dump(mode="json", by_alias=True))
        for party in parties or self.parties:
            words = ["fedsynth", "node", "approve", "/dev/stdin", "--home", "/var/lib/fedsynth", "--yes"]
            self.in_worker(party, *words, stdin=text)

    def ledger(self, party: str) -> dict[str, Any]:
        words = ["fedsynth", "node", "ledger", "--home", "/var/lib/fedsynth", "--json"]
        found: dict[str, Any] = json.loads(self.in_worker(party, *words))
        return found

    def write_plan(self, plan: Plan) -> Path:
        path = self.folder / f"{plan.name}.json"
        path.write_text(json.dumps(plan.model_dump(mode="json", by_alias=True)))
        return path

    def run(self, plan: Plan, *more: str, check: bool = True) -> str:
        return fedsynth("run", str(self.write_plan(plan)), "-n", AGGREGATOR, *more, check=check)

    def connected(self) -> set[str]:
        return {node["party"] for node in self.aggregator.status()["nodes"] if node["online"]}

    def wait_until_connected(self, parties: set[str], seconds: float = 240) -> None:
        deadline = time.monotonic() + seconds
        while not parties <= self.connected():
            assert time.monotonic() < deadline, self.connected()
            time.sleep(1)

    def progress(self, plan: Plan) -> dict[str, Any]:
        runs = [run for run in self.aggregator.status()["runs"] if run["digest"] == plan.digest()]
        return runs[0] if runs else {"state": "submitted", "round": 0}
