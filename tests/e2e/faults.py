"""Things that happen to a federation in a cluster, each as one function: killed, cut off, upgraded, without room.

Each is undone by itself or by whoever runs in the cluster; nobody resumes anything. Networks are cut by a policy, so
that needs a cluster that enforces them.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable

from tests.e2e.federation import AGGREGATOR, call

CUT_SECONDS, UNWRITABLE_SECONDS, STOPPED_SECONDS = 75, 20, 15
# The brackets keep the shell from finding, and killing, itself.
SIGNAL = "for each in /proc/[0-9]*; do grep -q '%s' $each/cmdline 2>/dev/null && kill -%s ${each:6}; done; true"
Fault = Callable[[str], None]  # to this party, or to the aggregator whoever is named


def node_pod(party: str) -> None:
    _delete_pods(f"fed-{party}", "fed-node")


def aggregator_pod(_: str) -> None:
    _delete_pods(AGGREGATOR, "aggregator")


def supernode(party: str) -> None:
    _in_node(party, "supernode", "kill 1")


def tasks(party: str) -> None:
    _in_node(party, "tasks", "kill 1")


def worker(party: str) -> None:
    _in_node(party, "worker", "kill 1")


def superlink(_: str) -> None:
    _in_aggregator("superlink", "kill 1")


def run(_: str) -> None:
    _in_aggregator("run", SIGNAL % ("flwr-server[a]pp", "9"))


def runner(_: str) -> None:
    _in_aggregator("run", "kill 1")


def cut_off(party: str) -> None:
    """Nothing passes between the party and anybody for longer than Flower's patience."""
    namespace = f"fed-{party}"
    own = json.loads(call("kubectl", "get", "networkpolicy", "fed-node", "-n", namespace, "-o", "json"))
    _patch_egress(namespace, [])
    try:
        time.sleep(CUT_SECONDS)
    finally:
        _patch_egress(namespace, own["spec"]["egress"])


def upgrade_party(party: str) -> None:
    call("kubectl", "rollout", "restart", "-n", f"fed-{party}", "deploy/fed-node")


def upgrade_aggregator(_: str) -> None:
    call("kubectl", "rollout", "restart", "-n", AGGREGATOR, "deploy/aggregator")


def unwritable_party(party: str) -> None:
    """As a full volume: answers cannot be stored, so nothing is answered."""
    script = (
        "cd /var/lib/fedsynth; chmod u-w answers answers/* 2>/dev/null; sleep %d; chmod u+w answers answers/*; true"
    )
    _in_node(party, "worker", script % UNWRITABLE_SECONDS)


def stopped_worker(party: str) -> None:
    """Swapping, or stunned: alive and silent."""
    _in_node(party, "worker", SIGNAL % ("fedsynth.node.[s]erve", "STOP"))
    time.sleep(STOPPED_SECONDS)
    _in_node(party, "worker", SIGNAL % ("fedsynth.node.[s]erve", "CONT"))


FAULTS: list[Fault] = [
    node_pod, aggregator_pod, supernode, tasks, worker, superlink, run, runner, cut_off, upgrade_party,
    upgrade_aggregator, unwritable_party, stopped_worker,
]  # fmt: skip
TAKES_A_PARTY_AWAY = (node_pod, supernode, cut_off, upgrade_party, unwritable_party)
BRIEF: list[Fault] = [run, worker, superlink, tasks, unwritable_party, stopped_worker]  # what heals within a minute


def chosen(seed: int, count: int, parties: list[str], among: list[Fault] = FAULTS) -> list[tuple[Fault, str]]:
    """Every kind in turn, in an order and at parties that the seed decides."""
    luck = random.Random(seed)
    order: list[Fault] = []
    while len(order) < count:
        order += luck.sample(among, len(among))
    return [(fault, luck.choice(parties)) for fault in order[:count]]


def _patch_egress(namespace: str, egress: list[object]) -> None:
    patch = json.dumps([{"op": "replace", "path": "/spec/egress", "value": egress}])
    call("kubectl", "patch", "networkpolicy", "fed-node", "-n", namespace, "--type=json", "-p", patch)


def _delete_pods(namespace: str, name: str) -> None:
    labels = f"app.kubernetes.io/name={name}"
    call("kubectl", "delete", "pod", "-n", namespace, "-l", labels, "--force", "--grace-period=0")


def _in_node(party: str, container: str, script: str) -> None:
    _bash(f"fed-{party}", "deploy/fed-node", container, script)


def _in_aggregator(container: str, script: str) -> None:
    _bash(AGGREGATOR, "deploy/aggregator", container, script)


def _bash(namespace: str, place: str, container: str, script: str) -> None:
    """What is just restarting cannot be hit; the next fault will."""
    call("kubectl", "exec", "-n", namespace, place, "-c", container, "--", "/bin/bash", "-c", script, check=False)
