"""One namespace of a cluster, and its API's failures as sentences."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException
from kubernetes.stream import stream
from urllib3.exceptions import HTTPError

from fedsynth.cluster.errors import ClusterError, Forbidden, NotInstalled, Unreachable
from fedsynth.cluster.pods import missing_volume, trouble

CONNECT_SECONDS = 10
STDIN_CHARACTERS = 8192  # in one frame


@contextmanager
def told(what: str) -> Iterator[None]:
    """Failures of the API while doing `what`, in one sentence with the remedy."""
    try:
        yield
    except ApiException as error:
        if error.status in (401, 403):
            raise Forbidden(
                f"you may not {what} (HTTP {error.status}); ask for a role that allows it, or choose another --context"
            ) from None
        if error.status == 404:
            raise NotInstalled(f"cannot {what}: there is no such thing; check --namespace and --release") from None
        raise ClusterError(f"cannot {what}: {_reason(error)}") from None
    except (HTTPError, OSError) as error:
        raise Unreachable(
            f"cannot {what}: no cluster answers ({type(error).__name__}); check KUBECONFIG, --context and your network"
        ) from None


class Cluster:
    """A namespace, as the current user may see it."""

    def __init__(self, namespace: str, context: str | None = None) -> None:
        self.namespace, self.context = namespace, context
        try:
            config.load_kube_config(os.environ.get("KUBECONFIG"), context)
        except ConfigException as error:
            raise Unreachable(
                f"there is no usable kubeconfig ({error}); set KUBECONFIG or choose a --context"
            ) from None
        self.core, self.batch, self.apps = client.CoreV1Api(), client.BatchV1Api(), client.AppsV1Api()

    def apply(self, text: str) -> None:
        """Create or replace secrets and config maps from YAML."""
        for manifest in filter(None, yaml.safe_load_all(text)):
            self.put(manifest)

    def put(self, manifest: dict[str, Any]) -> None:
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        ending = {"Secret": "secret", "ConfigMap": "config_map"}[kind]
        with told(f"write the {kind} {name} in namespace {self.namespace}"):
            try:
                getattr(self.core, f"create_namespaced_{ending}")(self.namespace, manifest)
            except ApiException as error:
                if error.status != 409:
                    raise
                getattr(self.core, f"replace_namespaced_{ending}")(name, self.namespace, manifest)

    def ensure_namespace(self) -> None:
        with told(f"create the namespace {self.namespace}"):
            try:
                self.core.create_namespace({"metadata": {"name": self.namespace}})
            except ApiException as error:
                if error.status != 409:
                    raise

    def pods(self, labels: str) -> list[Any]:
        with told(f"list pods in namespace {self.namespace}"):
            found: list[Any] = self.core.list_namespaced_pod(
                self.namespace, label_selector=labels, _request_timeout=CONNECT_SECONDS
            ).items
            return found

    def trouble(self, labels: str, seconds: float = 0.0) -> str | None:
        """What keeps one of these pods from running, if waiting will not help; Kubernetes may need `seconds` to say."""
        deadline = time.monotonic() + seconds
        while True:
            pods = self.pods(labels)
            found = [trouble(pod) or self._missing_volume(pod) or self._own_word(pod) for pod in pods]
            if any(found) or time.monotonic() >= deadline:
                return next(filter(None, found), None)
            time.sleep(1)

    def _missing_volume(self, pod: Any) -> str | None:
        if pod.status.phase != "Pending":
            return None
        with told(f"list events in namespace {self.namespace}"):
            which = f"involvedObject.name={pod.metadata.name}"
            return missing_volume(self.core.list_namespaced_event(self.namespace, field_selector=which).items)

    def _own_word(self, pod: Any) -> str | None:
        """Of a node that runs and is not ready: the last that its SuperNode complained of."""
        unready = [each.name for each in pod.status.container_statuses or [] if not each.ready and each.state.running]
        if "supernode" not in unready:
            return None
        with told(f"read the log of {pod.metadata.name}"):
            log = self.core.read_namespaced_pod_log(
                pod.metadata.name, self.namespace, container="supernode", tail_lines=200
            )
        words = last_complaint(log)
        return f"its node does not reach the aggregator: {words}" if words else None

    def run_in(self, pod: str, container: str, command: list[str], typed: str | None = None) -> str:
        """What a command prints in a container; its complaint as an error. `typed` is what it reads."""
        with told(f"run a command in pod {pod}"):
            session = stream(
                self.core.connect_get_namespaced_pod_exec,
                pod,
                self.namespace,
                container=container,
                command=command,
                stdin=typed is not None,
                stdout=True,
                stderr=True,
                tty=False,
                _preload_content=False,
            )
            for start in range(0, len(typed or ""), STDIN_CHARACTERS):
                session.write_stdin((typed or "")[start : start + STDIN_CHARACTERS])
            out: list[str] = []
            complaint: list[str] = []
            while session.is_open():
                session.update(timeout=1)
                out.append(session.read_stdout(timeout=0) if session.peek_stdout() else "")
                complaint.append(session.read_stderr(timeout=0) if session.peek_stderr() else "")
            session.close()
            status = exit_code(session)
        if status != 0:
            raise ClusterError("".join(complaint).strip().removeprefix("error: ") or f"{command} ended with {status}")
        return "".join(out)


def exit_code(session: Any) -> int:
    """Of a command. One that never began, in a container that is just starting anew, has none."""
    try:
        return int(session.returncode)
    except ValueError:
        raise ClusterError("the container is not running at this moment; try again.") from None


def last_complaint(log: str) -> str | None:
    """The last warning or error in a log of JSON lines."""
    for text in reversed(log.splitlines()):
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if line.get("level") in ("warning", "error", "critical"):
            return str(line["message"])
    return None


def _reason(error: ApiException) -> str:
    try:
        return str(json.loads(error.body)["message"])
    except (TypeError, ValueError, KeyError):
        return f"HTTP {error.status}"
