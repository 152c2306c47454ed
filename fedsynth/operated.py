"""An aggregator as its operator's commands see it, wherever it runs: a word to it, a run's progress, a release.

`fedsynth.cluster.runs` speaks to one in a cluster, `fedsynth.sandbox.operator` to one on this machine.
"""

from __future__ import annotations

import base64
import io
import json
import os
import tarfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from synth.errors import FedsynthError
from synth.plan import Plan

DONE = ("finished", "released", "withheld")
ENDED = (*DONE, "failed", "interrupted", "stopped")
POLL_SECONDS = 2.0
SILENCE_SECONDS = 60.0  # of a run, before Flower is asked about it
SANDBOX = "FEDSYNTH_SANDBOX"  # in the environment: the folder of a sandbox to speak to in place of a cluster


class Operated(ABC):
    """One aggregator."""

    @abstractmethod
    def ask(self, *words: str) -> str:
        """What `python -m aggregator.server.control WORDS` says there."""

    @abstractmethod
    def submit(self, plan: Plan) -> dict[str, Any]:
        """Start a run and return the aggregator's word on it."""

    @abstractmethod
    def progress(self, digest: str) -> dict[str, Any] | None:
        """A run's own report; None: it has not begun, or cannot be read just now."""

    @abstractmethod
    def log(self, container: str, lines: int) -> str:
        """The last lines of one of the aggregator's logs."""

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.ask("status"))
        return found

    def watch(self, digest: str, flower_run: str) -> Iterator[dict[str, Any]]:
        """The run's progress, again and again, until it ends. An aggregator that restarts is waited for."""
        changed, last = time.monotonic(), None
        while True:
            progress = self.progress(digest)
            if progress != last:
                changed, last = time.monotonic(), progress
            elif time.monotonic() - changed > SILENCE_SECONDS:  # ask Flower whether it is still alive
                changed = time.monotonic()
                progress = self._as_flower_sees_it(digest) or progress
            if progress is not None and progress["flower_run"] == flower_run:
                yield progress
                if progress["state"] in ENDED:
                    return
            time.sleep(POLL_SECONDS)

    def fetch(self, name: str, out: Path, despite_gate: bool = False) -> list[Path]:
        """Unpack a run's release into a folder; of a withheld one the papers, or everything despite its gate."""
        content = base64.b64decode(self.ask("fetch", name, *(["--despite-gate"] if despite_gate else [])))
        out.mkdir(parents=True, exist_ok=True)
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            tar.extractall(out, filter="data")
            return [out / member.name for member in tar.getmembers()]

    def _as_flower_sees_it(self, digest: str) -> dict[str, Any] | None:
        try:
            return next((run for run in self.status()["runs"] if run["digest"] == digest), None)
        except FedsynthError:
            return None


def operated(namespace: str, release: str, context: str | None) -> Operated:
    """The aggregator that an operator's command is about: a release in a cluster, or the sandbox of the environment."""
    if folder := os.environ.get(SANDBOX):
        from fedsynth.sandbox.operator import SandboxAggregator

        return SandboxAggregator(Path(folder))
    from fedsynth.cluster.api import Cluster
    from fedsynth.cluster.runs import Aggregator

    return Aggregator(Cluster(namespace, context), release)
