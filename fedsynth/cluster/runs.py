"""Runs on a cluster's aggregator: submitted by a job, watched and fetched through its pod."""

from __future__ import annotations

import json
import time
from functools import cached_property
from typing import TYPE_CHECKING, Any

import yaml

from fedsynth.cluster.api import Cluster, told
from fedsynth.cluster.errors import ClusterError, NotInstalled, Stuck
from fedsynth.cluster.pods import is_ready, trouble
from fedsynth.cluster.user import kubernetes_user
from fedsynth.operated import SUBMIT_SECONDS, Operated
from synth.audit_log import WHO

if TYPE_CHECKING:
    from synth.plan import Plan  # loads pandas; `fedsynth status` does not

STATUS_FILE = "/run/metrics/status.json"  # what aggregator/server/snapshot.py keeps


class Aggregator(Operated):
    """One release of the aggregator chart."""

    def __init__(self, cluster: Cluster, release: str) -> None:
        self.cluster, self.release = cluster, release
        self.labels = f"app.kubernetes.io/name=aggregator,app.kubernetes.io/instance={release}"
        self.name = release if "aggregator" in release else f"{release}-aggregator"

    def pod(self) -> str:
        """The aggregator's pod, ready; or why there is none."""
        pods = self.cluster.pods(f"{self.labels},app.kubernetes.io/component=aggregator")
        if not pods:
            raise NotInstalled(
                f"there is no aggregator '{self.release}' in namespace {self.cluster.namespace}; "
                "`fedsynth install aggregator` makes one"
            )
        ready = [pod for pod in pods if is_ready(pod)]
        if ready:
            return str(ready[0].metadata.name)
        reason = next(
            filter(None, map(trouble, pods)), f"pod {pods[0].metadata.name} is starting; try again in a minute"
        )
        raise Stuck(reason)

    def ask(self, *words: str, typed: str | None = None) -> str:
        acting = ["/usr/bin/env", f"{WHO}={self.who}"]
        command = [*acting, "python", "-m", "aggregator.server.control", *words]
        return self.cluster.run_in(self.pod(), "run", command, typed)

    @cached_property
    def who(self) -> str:
        """Whom the aggregator's audit log names."""
        return kubernetes_user(self.cluster.context)

    def status(self) -> dict[str, Any]:
        """What the runner wrote last, seconds ago at most: no process is started in the pod but `cat`."""
        try:
            found: dict[str, Any] = json.loads(self.cluster.run_in(self.pod(), "run", ["cat", STATUS_FILE]))
        except (ValueError, ClusterError):  # the pod has just started
            found = json.loads(self.ask("status"))
        return found

    def submit(self, plan: Plan) -> dict[str, Any]:
        """Create the job that starts the run, wait for its word, and return it."""
        self.pod()
        name = f"{self.name}-run-{plan.digest()[:10]}-{int(time.time()) % 100_000:05d}"
        text = json.dumps(plan.model_dump(mode="json", by_alias=True))
        given = {"plan.json": text, "who": self.who}
        labels = dict(each.split("=") for each in self.labels.split(","))
        self.cluster.put({"kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": given})
        with told("read the release's job and create it"):
            template = self.cluster.core.read_namespaced_config_map(f"{self.name}-run-job", self.cluster.namespace)
            job = yaml.safe_load(template.data["job.yaml"].replace("RUN", name))
            made = self.cluster.batch.create_namespaced_job(self.cluster.namespace, job)
            owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": made.metadata.uid}
            owned = {"metadata": {"ownerReferences": [owner]}}  # the plan goes with the job, a day later
            self.cluster.core.patch_namespaced_config_map(name, self.cluster.namespace, owned)
        return self._word_of(name)

    def _word_of(self, job: str) -> dict[str, Any]:
        deadline = time.monotonic() + SUBMIT_SECONDS
        while time.monotonic() < deadline:
            for pod in self.cluster.pods(f"job-name={job}"):
                if pod.status.phase in ("Succeeded", "Failed"):
                    with told(f"read the log of job {job}"):
                        log = self.cluster.core.read_namespaced_pod_log(pod.metadata.name, self.cluster.namespace)
                    if pod.status.phase == "Failed":
                        raise ClusterError(f"the run was not accepted: {log.strip().removeprefix('error: ')}")
                    word: dict[str, Any] = json.loads(log.strip().splitlines()[-1])
                    return word
                if reason := trouble(pod):
                    raise Stuck(reason)
            time.sleep(1)
        raise ClusterError(f"job {job} did not end within {SUBMIT_SECONDS:.0f} s; see `kubectl describe job {job}`")

    def progress(self, digest: str) -> dict[str, Any] | None:
        """A run's own report, read as a file: starting Python in the pod at every look would slow the run down."""
        path = f"/var/lib/fedsynth/runs/{digest}/progress.json"
        try:
            found: dict[str, Any] = json.loads(self.cluster.run_in(self.pod(), "run", ["cat", path]))
        except ClusterError:  # not begun, or the pod restarts
            return None
        return found

    def log(self, container: str, lines: int) -> str:
        texts = []
        for pod in self.cluster.pods(f"{self.labels},app.kubernetes.io/component=aggregator"):
            with told(f"read the log of {pod.metadata.name}"):
                read = self.cluster.core.read_namespaced_pod_log
                texts.append(read(pod.metadata.name, self.cluster.namespace, container=container, tail_lines=lines))
        return "\n".join(texts)
