"""What is wrong with a cluster is said in one sentence with the remedy."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import MaxRetryError

from fedsynth.cluster.api import exit_code, last_complaint, told
from fedsynth.cluster.errors import ClusterError, Forbidden, NotInstalled, Unreachable
from fedsynth.cluster.pods import is_ready, missing_volume, trouble


def _pod(
    conditions: list[Any] | None = None, waiting: Any = None, deleted: str | None = None, last: Any = None
) -> SimpleNamespace:
    container = SimpleNamespace(
        name="run",
        image="fedsynth/aggregator:9",
        ready=False,
        state=SimpleNamespace(waiting=waiting, terminated=None),
        last_state=last,
    )
    status = SimpleNamespace(conditions=conditions, init_container_statuses=None, container_statuses=[container])
    limits = SimpleNamespace(name="run", resources=SimpleNamespace(limits={"memory": "64Mi"}))
    metadata = SimpleNamespace(name="pod-1", namespace="fed", deletion_timestamp=deleted)
    return SimpleNamespace(metadata=metadata, status=status, spec=SimpleNamespace(containers=[limits]))


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
    [
        ("ImagePullBackOff", "cannot pull the image fedsynth/aggregator:9"),
        ("CrashLoopBackOff", "kubectl logs -n fed pod-1 -c run"),
    ],
)
def test_why_a_container_does_not_start(reason: str, said: str) -> None:
    assert said in (trouble(_pod(waiting=SimpleNamespace(reason=reason, message=None))) or "")


def test_a_container_that_ran_out_of_memory_says_so_with_its_limit() -> None:
    killed = SimpleNamespace(terminated=SimpleNamespace(reason="OOMKilled"))
    crashing = SimpleNamespace(reason="CrashLoopBackOff", message=None)
    said = trouble(_pod(waiting=crashing, last=killed)) or ""
    assert "OOMKilled" in said
    assert "64Mi" in said
    assert "resources.run.limits.memory" in said


def test_a_secret_that_is_gone_is_named() -> None:
    event = SimpleNamespace(
        reason="FailedMount",
        message='MountVolume.SetUp failed for volume "keys" : secret "fed-node-keys" not found',
        involved_object=SimpleNamespace(name="pod-1"),
    )
    assert 'secret "fed-node-keys" not found' in (missing_volume([event]) or "")
    assert missing_volume([SimpleNamespace(reason="Pulled", message="not found")]) is None


def test_the_last_complaint_of_a_log_is_found() -> None:
    lines = [
        '{"level": "error", "message": "first"}',
        "coloured text",
        '{"level": "warning", "message": "certificate"}',
    ]
    assert last_complaint("\n".join([*lines, '{"level": "info", "message": "again"}'])) == "certificate"
    assert last_complaint("") is None


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


def test_a_container_that_is_just_starting_anew_is_said_to_be() -> None:
    """The client library takes the runtime's complaint for a number; `status` ended in a traceback."""

    class Session:
        @property
        def returncode(self) -> int:
            return int("error executing command in container: cannot exec in a stopped container")

    with pytest.raises(ClusterError, match="not running at this moment"):
        exit_code(Session())
