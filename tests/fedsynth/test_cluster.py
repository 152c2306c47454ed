"""What is wrong with a cluster is said in one sentence with the remedy."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import MaxRetryError

from fedsynth.cluster.api import told
from fedsynth.cluster.errors import ClusterError, Forbidden, NotInstalled, Unreachable
from fedsynth.cluster.pods import is_ready, trouble


def _pod(conditions: list[Any] | None = None, waiting: Any = None, deleted: str | None = None) -> SimpleNamespace:
    container = SimpleNamespace(name="run", image="fedsynth/aggregator:9", state=SimpleNamespace(waiting=waiting))
    status = SimpleNamespace(conditions=conditions, init_container_statuses=None, container_statuses=[container])
    return SimpleNamespace(metadata=SimpleNamespace(name="pod-1", deletion_timestamp=deleted), status=status)


def _condition(kind: str, status: str, message: str = "") -> SimpleNamespace:
    return SimpleNamespace(type=kind, status=status, message=message)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("0/3 nodes are available: 3 Insufficient nvidia.com/gpu.", "waits for a GPU that no node offers"),
        ("0/3 nodes are available: 3 Insufficient memory.", "Lower resources"),
        ("0/1 nodes are available: 1 pod has unbound immediate PersistentVolumeClaims.", "storageClass"),
        ("0/1 nodes are available: 1 node had taint.", "cannot be placed"),
    ],
)
def test_why_a_pod_has_no_node(message: str, said: str) -> None:
    assert said in (trouble(_pod([_condition("PodScheduled", "False", message)])) or "")


@pytest.mark.parametrize(
    ("reason", "said"),
    [("ImagePullBackOff", "cannot pull the image fedsynth/aggregator:9"), ("CrashLoopBackOff", "fedsynth logs")],
)
def test_why_a_container_does_not_start(reason: str, said: str) -> None:
    assert said in (trouble(_pod(waiting=SimpleNamespace(reason=reason, message=None))) or "")


def test_a_pod_that_is_only_starting_is_no_trouble() -> None:
    assert trouble(_pod(waiting=SimpleNamespace(reason="ContainerCreating", message=None))) is None


def test_a_pod_that_is_going_away_is_not_ready() -> None:
    assert is_ready(_pod([_condition("Ready", "True")]))
    assert not is_ready(_pod([_condition("Ready", "True")], deleted="2026-01-01"))


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (ApiException(status=403), Forbidden, "ask for a role"),
        (ApiException(status=404), NotInstalled, "--namespace"),
        (ApiException(status=500), ClusterError, "HTTP 500"),
        (MaxRetryError(None, "/api", None), Unreachable, "KUBECONFIG"),  # type: ignore[arg-type]
    ],
)
def test_failures_of_the_api_in_words(error: Exception, kind: type[ClusterError], said: str) -> None:
    with pytest.raises(kind, match=said) as caught, told("list pods"):
        raise error
    assert "list pods" in str(caught.value)
    assert caught.value.exit_code == 8
