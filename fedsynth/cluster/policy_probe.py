"""Are network policies enforced? Kubernetes stores them whether or not anything obeys them, so it is tried.

Two short-lived pods: one listens, one calls. The call must succeed, and must fail once a policy forbids it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from fedsynth.cluster.api import Cluster, told
from fedsynth.cluster.errors import ClusterError, Stuck
from fedsynth.cluster.pods import is_ready, trouble

LISTENER, CALLER = "fedsynth-probe-listener", "fedsynth-probe-caller"
LABEL = "fedsynth.org/probe"
PORT = 8080
START_SECONDS = 180.0
OBEY_SECONDS = 20.0  # for whoever enforces policies to notice a new one
LIFE_SECONDS = 600  # of a pod that an interrupted probe left behind
DIAL = f"""
import socket, sys
try:
    socket.create_connection((sys.argv[1], {PORT}), 3).close()
    print("open")
except OSError:
    print("closed")
"""


def are_enforced(cluster: Cluster, image: str) -> bool:
    """Try it in this namespace, with pods of this image (any with Python)."""
    with _pods(cluster, image):
        address = _address_of_listener(cluster)
        if not _becomes(cluster, address, "open", START_SECONDS):
            raise ClusterError("pods of this namespace cannot reach each other, so network policies cannot be tried")
        with _forbidden(cluster):
            return _becomes(cluster, address, "closed", OBEY_SECONDS)


def _becomes(cluster: Cluster, address: str, wanted: str, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while cluster.run_in(CALLER, "probe", ["python", "-c", DIAL, address]).strip() != wanted:
        if time.monotonic() > deadline:
            return False
        time.sleep(1)
    return True


def _address_of_listener(cluster: Cluster) -> str:
    deadline = time.monotonic() + START_SECONDS
    while True:
        pods = {pod.metadata.name: pod for pod in cluster.pods(LABEL)}
        if len(pods) == 2 and all(map(is_ready, pods.values())):
            return str(pods[LISTENER].status.pod_ip)
        if reason := next(filter(None, map(trouble, pods.values())), None):
            raise Stuck(reason)
        if time.monotonic() > deadline:
            raise Stuck(f"the probe's pods did not start within {START_SECONDS:.0f} s")
        time.sleep(1)


@contextmanager
def _pods(cluster: Cluster, image: str) -> Iterator[None]:
    commands = {
        LISTENER: ["python", "-m", "http.server", str(PORT), "--directory", "/tmp"],
        CALLER: ["python", "-c", f"import time; time.sleep({LIFE_SECONDS})"],
    }
    try:
        with told(f"start the probe's pods in namespace {cluster.namespace}"):
            for name, command in commands.items():
                cluster.core.create_namespaced_pod(cluster.namespace, _pod(name, image, command))
        yield
    finally:
        for name in commands:
            _gone(partial(cluster.core.delete_namespaced_pod, name, cluster.namespace, grace_period_seconds=0))


@contextmanager
def _forbidden(cluster: Cluster) -> Iterator[None]:
    """Nobody may call the listener."""
    policies = client.NetworkingV1Api()
    spec = {"podSelector": {"matchLabels": {LABEL: LISTENER}}, "policyTypes": ["Ingress"], "ingress": []}
    policy = {"metadata": {"name": LISTENER}, "spec": spec}
    try:
        with told(f"create a network policy in namespace {cluster.namespace}"):
            policies.create_namespaced_network_policy(cluster.namespace, policy)
        yield
    finally:
        _gone(partial(policies.delete_namespaced_network_policy, LISTENER, cluster.namespace))


def _gone(delete: Callable[[], object]) -> None:
    try:
        delete()
    except ApiException as error:
        if error.status != 404:
            raise ClusterError(f"the probe could not clean up after itself: HTTP {error.status}") from None


def _pod(name: str, image: str, command: list[str]) -> dict[str, Any]:
    """As restricted as the charts' own."""
    container = {
        "name": "probe",
        "image": image,
        "command": command,
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    spec = {
        "containers": [container],
        "restartPolicy": "Never",
        "activeDeadlineSeconds": LIFE_SECONDS,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 10001,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    return {"metadata": {"name": name, "labels": {LABEL: name}}, "spec": spec}
