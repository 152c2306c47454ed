"""What a federation in a cluster costs beside the computing: `make bench-cluster`. Last line: one JSON object.

`python -m benchmarks.cluster [--only NAME …]` takes some of the figures, after connecting three parties.

Three parties with a third of Adult each, in the cluster of KUBECONFIG or in a kind cluster made for it. Times are wall
clock on whatever machine runs the cluster; memory is what the containers' cgroups count, caches left out.
"""

from __future__ import annotations

import argparse
import datetime as dt
import gzip
import itertools
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import mean
from typing import Any

import pandas as pd

from fedsynth.cluster.errors import ClusterError
from fedsynth.documents import read_plan_content
from synth.plan import Plan, parse_plan
from synth.programme import programme
from tests.e2e.chaos import Story
from tests.e2e.faults import FAULTS, chosen
from tests.e2e.federation import AGGREGATOR, LASTING, ROOT, Federation, a_cluster, call, fedsynth

PARTIES = ["north", "south", "west"]
ROUNDS, MANY = 20, 30
CPU = "cat /sys/fs/cgroup/cpu.stat /sys/fs/cgroup/cpuacct/cpuacct.usage 2>/dev/null | head -1"
MEMORY = "cat /sys/fs/cgroup/memory.stat /sys/fs/cgroup/memory/memory.stat 2>/dev/null"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", nargs="+", metavar="NAME", help="figures to take; all if left out")
    only = options.parse_args().only
    with a_cluster(), tempfile.TemporaryDirectory() as folder:
        federation = Federation(Path(folder), list(PARTIES))
        try:
            figures = measure(federation, only)
        finally:
            federation.remove()
    print(json.dumps({name: round(value, 2) for name, value in figures.items()}))


def measure(federation: Federation, only: list[str] | None) -> dict[str, float]:
    """One figure after the other, each printed with the machine's load: a busy machine is slow at everything."""
    work: dict[str, float] = {}
    story = Story(federation, lambda name: adult_plan({"name": "ctgan", "rounds": 12, "steps_per_round": 1}, name))
    steps: dict[str, Callable[[], float]] = {
        "connect_seconds": lambda: connect(federation),
        "node_mb": lambda: memory("fed-north", "fed-node"),
        "aggregator_mb": lambda: memory(AGGREGATOR, "aggregator"),
        "status_seconds": status_seconds,
        "marginals_seconds": lambda: marginals(federation),
        "round_overhead_seconds": lambda: round_overhead(federation, work),
        "superlink_cpu_per_party_round_ms": lambda: work["superlink_cpu_ms"],
        "node_recovery_seconds": lambda: recovery("fed-north", "fed-node"),
        "superlink_recovery_seconds": lambda: superlink_recovery(federation),
        "self_healed_share": lambda: self_healed(story),
        "waiting_named_share": lambda: mean(story.named),
        "parties_30_connect_seconds": lambda: connect_more(federation, MANY),
        "parties_30_marginals_seconds": lambda: run_of(federation, "bench-many", federation.parties),
    }
    figures = {}
    for name in steps if only is None else ["connect_seconds", *only]:
        figures[name] = steps[name]()
        print(f"{name} {figures[name]:.2f}  (load {os.getloadavg()[0]:.1f})", flush=True)
    return figures


def connect(federation: Federation) -> float:
    """From the first install to all parties connected."""
    federation.provision()
    parts = parts_of(PARTIES)
    began = time.monotonic()
    federation.install(parts, "rows.csv.gz", policy=LASTING)
    return time.monotonic() - began


def status_seconds() -> float:
    """What a person waits for `fedsynth status`, its own start included; the mean of five."""
    began = time.monotonic()
    for _ in range(5):
        fedsynth("status", "-n", AGGREGATOR)
    return (time.monotonic() - began) / 5


def marginals(federation: Federation) -> float:
    """From `fedsynth run` to the fetched table."""
    return run_of(federation, "bench-marginals", PARTIES)


def run_of(federation: Federation, name: str, parties: list[str]) -> float:
    plan = adult_plan({"name": "marginals"}, name, parties)
    federation.approve(plan, parties)
    began = time.monotonic()
    _succeed(federation.run(plan, "--wait"))
    fedsynth("fetch", plan.name, "--out", str(federation.folder / name), "-n", AGGREGATOR)
    return time.monotonic() - began


def round_overhead(federation: Federation, work: dict[str, float]) -> float:
    """A round's wall clock beyond the slowest party's computing, over rounds of one step each."""
    plan = adult_plan({"name": "ctgan", "rounds": ROUNDS, "steps_per_round": 1}, "bench-rounds")
    federation.approve(plan)
    before = superlink_cpu_seconds()
    _succeed(federation.run(plan, "--wait"))
    work["superlink_cpu_ms"] = 1000 * (superlink_cpu_seconds() - before) / programme(plan).asks / len(PARTIES)
    log = fedsynth("logs", "-n", AGGREGATOR, "--lines", "2000")
    times = [dt.datetime.fromisoformat(line["time"]) for line in _json_lines(log) if line.get("round")][-ROUNDS:]
    walls = [(after - before).total_seconds() for before, after in itertools.pairwise(times)]
    return mean(walls) - max(_computing(name) for name in PARTIES)


def superlink_cpu_seconds() -> float:
    """Of the container, since it began."""
    words = ["-n", AGGREGATOR, "deploy/aggregator", "-c", "superlink", "--", "/bin/bash", "-c", CPU]
    found = call("kubectl", "exec", *words).split()
    return int(found[1]) / 1e6 if "usage_usec" in found else int(found[0]) / 1e9


def self_healed(story: Story) -> float:
    """The share of runs that were released by themselves, a fault of each kind in all; what is asserted of each is in
    tests/e2e/chaos.py."""
    calm, healed = story.epsilon(story.started("calm")), list[bool]()
    faults = chosen(1, len(FAULTS), PARTIES)
    for number, part in enumerate((faults[::2], faults[1::2])):
        try:
            story.meet(part, f"chaos-{number}", calm)
            healed.append(True)
        except AssertionError as error:
            print(error, flush=True)
            healed.append(False)
    return mean(healed)


def connect_more(federation: Federation, count: int) -> float:
    """From the first install of further parties, all at once, until so many are connected."""
    names = [f"party-{number}" for number in range(len(PARTIES) + 1, count + 1)]
    federation.parties += names
    federation.operator_made |= set(names)
    federation.provision()
    federation.install_aggregator()
    rows = parts_of(federation.parties)
    small = {"requests": {"cpu": "5m", "memory": "32Mi"}}
    tiny = {"resources": dict.fromkeys(("supernode", "tasks", "worker", "console", "job"), small)}
    for name in PARTIES:  # what they reserve would leave no room for the others on two cores
        federation.install_party(name, rows[name], "rows.csv.gz", **tiny)
    began = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(federation.install_party, name, rows[name], "rows.csv.gz", **tiny) for name in names]:
            done.result()
    federation.wait_until_connected(set(federation.parties), 1800)
    return time.monotonic() - began


def _computing(party: str) -> float:
    log = call("kubectl", "logs", "-n", f"fed-{party}", "deploy/fed-node", "-c", "worker", "--tail", "200")
    asks = [line["seconds"] for line in _json_lines(log) if line.get("kind") == "ask" and "seconds" in line]
    return float(mean(asks[-ROUNDS + 1 :]))


def recovery(namespace: str, release: str) -> float:
    """From a killed node pod to the party connected anew: the new pod's own word for it."""
    labels = ["-n", namespace, "-l", f"app.kubernetes.io/name={release}"]
    before = call("kubectl", "get", "pods", *labels, "-o", "name").split()
    call("kubectl", "delete", "pod", *labels, "--force", "--grace-period=0")
    began = time.monotonic()
    while True:
        for pod in set(call("kubectl", "get", "pods", *labels, "-o", "name").split()) - set(before):
            if "SuperNode ID" in call("kubectl", "logs", "-n", namespace, pod, "-c", "supernode", check=False):
                return time.monotonic() - began
        time.sleep(1)


def superlink_recovery(federation: Federation) -> float:
    """From a killed SuperLink to one that is ready and that every party talks to again."""
    before, began_at = _restarts(), dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    call("kubectl", "exec", "-n", AGGREGATOR, "deploy/aggregator", "-c", "superlink", "--", "/bin/bash", "-c", "kill 1")
    began = time.monotonic()
    federation.wait_for(lambda: _restarts() > before, "a restart")
    call("kubectl", "wait", "-n", AGGREGATOR, "--for=condition=Available", "deploy/aggregator", "--timeout=300s")
    federation.wait_for(lambda: all(_is_back(party, began_at) for party in PARTIES), "the parties' return")
    return time.monotonic() - began


def _is_back(party: str, since: str) -> bool:
    """Whether a SuperNode noticed that the SuperLink was away, and found it again."""
    words = ["logs", "-n", f"fed-{party}", "deploy/fed-node", "-c", "supernode", "--since-time", since]
    lines = [line for line in call("kubectl", *words).splitlines() if "Connection" in line]
    return bool(lines) and "successful" in lines[-1]


def _restarts() -> int:
    """How often the SuperLink came back and was ready."""
    words = ["get", "pods", "-n", AGGREGATOR, "-l", "app.kubernetes.io/component=aggregator", "-o", "json"]
    statuses = json.loads(call("kubectl", *words))["items"][0]["status"]["containerStatuses"]
    return sum(each["restartCount"] for each in statuses if each["name"] == "superlink" and each["ready"])


def memory(namespace: str, release: str) -> float:
    """Anonymous memory of all containers of a pod that have a shell, in MB."""
    containers = ("supernode", "tasks", "worker") if release == "fed-node" else ("superlink", "run")
    total = 0
    for container in containers:
        words = ["-n", namespace, f"deploy/{release}", "-c", container, "--", "/bin/bash", "-c", MEMORY]
        lines = dict(line.split() for line in call("kubectl", "exec", *words, check=False).splitlines())
        total += int(lines.get("anon") or lines["rss"])
    return total / 1e6


def parts_of(parties: Sequence[str]) -> dict[str, bytes]:
    """Adult's rows, dealt out."""
    rows = pd.read_csv(ROOT / "examples/data/adult-train.csv.gz", dtype=str, keep_default_na=False)
    shuffled = rows.sample(frac=1, random_state=1)
    return {
        name: gzip.compress(shuffled.iloc[number :: len(parties)].to_csv(index=False).encode())
        for number, name in enumerate(parties)
    }


def adult_plan(synthesizer: dict[str, Any], name: str, parties: Sequence[str] = PARTIES) -> Plan:
    content = read_plan_content(ROOT / "examples/adult.yaml")
    members = [{"name": party, "rows": 30_000 // len(parties)} for party in parties]
    return parse_plan(content | {"name": name, "parties": members, "synthesizer": synthesizer})


def _succeed(done: subprocess.CompletedProcess[str]) -> None:
    if done.returncode != 0:
        raise SystemExit(done.stderr)


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
