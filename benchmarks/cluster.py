"""What a federation in a cluster costs beside the computing: `make bench-cluster`. Last line: one JSON object.

Three parties with a third of Adult each, in the cluster of KUBECONFIG or in a kind cluster made for it. Times are wall
clock on whatever machine runs the cluster; memory is what the containers' cgroups count, caches left out.
"""

from __future__ import annotations

import datetime as dt
import gzip
import json
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import mean
from typing import Any

import pandas as pd

from fedsynth.cluster.errors import ClusterError
from fedsynth.documents import read_plan_content
from synth.plan import Plan, parse_plan
from tests.e2e.federation import AGGREGATOR, ROOT, Federation, a_cluster, call, fedsynth

PARTIES = ["north", "south", "west"]
MEMORY = "cat /sys/fs/cgroup/memory.stat /sys/fs/cgroup/memory/memory.stat 2>/dev/null"


def main() -> None:
    with a_cluster(), tempfile.TemporaryDirectory() as folder:
        federation = Federation(Path(folder), PARTIES)
        figures: dict[str, float] = {"connect_seconds": connect(federation)}
        figures |= {"node_mb": memory("fed-north", "fed-node"), "aggregator_mb": memory(AGGREGATOR, "aggregator")}
        figures["marginals_seconds"] = marginals(federation)
        figures["round_overhead_seconds"] = round_overhead(federation)
        figures["node_recovery_seconds"] = recovery("fed-north", "fed-node")
        figures["superlink_recovery_seconds"] = superlink_recovery()
        print(json.dumps({name: round(value, 1) for name, value in figures.items()}))


def connect(federation: Federation) -> float:
    """From the first install to all parties connected."""
    federation.provision()
    parts = thirds()
    began = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        work = [pool.submit(federation.install_aggregator)]
        work += [pool.submit(federation.install_party, name, parts[name], "rows.csv.gz") for name in PARTIES]
        for each in work:
            each.result()
    federation.wait_until_connected(set(PARTIES))
    return time.monotonic() - began


def marginals(federation: Federation) -> float:
    """From `fedsynth run` to the fetched table."""
    plan = adult_plan({"name": "marginals"}, "bench-marginals")
    federation.approve(plan)
    began = time.monotonic()
    federation.run(plan, "--wait")
    fedsynth("fetch", plan.name, "--out", str(federation.folder / "release"), "-n", AGGREGATOR)
    return time.monotonic() - began


def round_overhead(federation: Federation) -> float:
    """A round's wall clock beyond the slowest party's computing, over ten rounds of one step each."""
    plan = adult_plan({"name": "ctgan", "rounds": 10, "steps_per_round": 1}, "bench-rounds")
    federation.approve(plan)
    federation.run(plan, "--wait")
    log = fedsynth("logs", "-n", AGGREGATOR, "--lines", "2000")
    times = [dt.datetime.fromisoformat(line["time"]) for line in _json_lines(log) if line.get("round")]
    walls = [(after - before).total_seconds() for before, after in zip(times[-10:], times[-9:], strict=False)]
    return mean(walls) - mean(_computing(name) for name in PARTIES)


def _computing(party: str) -> float:
    log = call("kubectl", "logs", "-n", f"fed-{party}", "deploy/fed-node", "-c", "worker", "--tail", "200")
    asks = [line["seconds"] for line in _json_lines(log) if line.get("kind") == "ask" and "seconds" in line]
    return float(mean(asks[-9:]))


def recovery(namespace: str, release: str) -> float:
    """From a killed node pod to the party connected anew."""
    call("kubectl", "delete", "pod", "-n", namespace, "-l", f"app.kubernetes.io/name={release}", "--force")
    began = time.monotonic()
    while "SuperNode ID" not in call(
        "kubectl", "logs", "-n", namespace, f"deploy/{release}", "-c", "supernode", check=False
    ):
        time.sleep(1)
    return time.monotonic() - began


def superlink_recovery() -> float:
    """From a killed SuperLink to an aggregator that is ready again."""
    place = ["-n", AGGREGATOR, "deploy/aggregator"]
    call("kubectl", "exec", *place, "-c", "superlink", "--", "/bin/bash", "-c", "kill 1")
    began = time.monotonic()
    time.sleep(2)
    call("kubectl", "wait", "-n", AGGREGATOR, "--for=condition=Available", "deploy/aggregator", "--timeout=180s")
    return time.monotonic() - began


def memory(namespace: str, release: str) -> float:
    """Anonymous memory of all containers of a pod that have a shell, in MB."""
    containers = ("supernode", "tasks", "worker") if release == "fed-node" else ("superlink", "run")
    total = 0
    for container in containers:
        words = ["-n", namespace, f"deploy/{release}", "-c", container, "--", "/bin/bash", "-c", MEMORY]
        lines = dict(line.split() for line in call("kubectl", "exec", *words, check=False).splitlines())
        total += int(lines.get("anon") or lines["rss"])
    return total / 1e6


def thirds() -> dict[str, bytes]:
    rows = pd.read_csv(ROOT / "examples/data/adult-train.csv.gz", dtype=str, keep_default_na=False)
    shuffled = rows.sample(frac=1, random_state=1)
    return {
        name: gzip.compress(shuffled.iloc[number::3].to_csv(index=False).encode())
        for number, name in enumerate(PARTIES)
    }


def adult_plan(synthesizer: dict[str, Any], name: str) -> Plan:
    content = read_plan_content(ROOT / "examples/adult.yaml")
    parties = [{"name": party, "rows": 10_000} for party in PARTIES]
    return parse_plan(content | {"name": name, "parties": parties, "synthesizer": synthesizer})


def _json_lines(text: str) -> list[dict[str, Any]]:
    found = []
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
    return found


if __name__ == "__main__":
    try:
        main()
    except ClusterError as error:
        raise SystemExit(str(error)) from None
