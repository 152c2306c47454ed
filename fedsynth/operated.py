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
from typing import TYPE_CHECKING, Any

from aggregator.states import ENDED, Standing
from synth.messages.folder_archive import unpack

if TYPE_CHECKING:
    from synth.plan import Plan  # loads pandas; `fedsynth status` does not

SUBMIT_SECONDS = 180.0  # for a run that was submitted to begin
POLL_SECONDS = 2.0
SANDBOX = "FEDSYNTH_SANDBOX"  # in the environment: the folder of a sandbox to speak to in place of a cluster


class Operated(ABC):
    """One aggregator."""

    @abstractmethod
    def ask(self, *words: str, typed: str | None = None) -> str:
        """What `python -m aggregator.server.control WORDS` says there; `typed` is what it reads."""

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

    def watch(self, digest: str, flower_run: str) -> Iterator[Standing]:
        """Where the run stands, again and again, until it ends. An aggregator that restarts is waited for, and a run
        that the supervisor resumes is followed under its new number."""
        seen = False  # whether the run that was submitted has begun: before, the file tells of an earlier attempt
        began = time.monotonic()
        while True:
            found = self.progress(digest)
            if found is not None:
                standing = Standing.from_json(found)
                seen = seen or standing.flower_run == flower_run or time.monotonic() - began > SUBMIT_SECONDS
                if seen:
                    yield standing
                    if standing.state in ENDED:
                        return
            time.sleep(POLL_SECONDS)

    def fetch(self, name: str, out: Path, despite_gate: bool = False) -> list[Path]:
        """Unpack a run's release into a folder; of a withheld one the papers, or everything despite its gate."""
        content = base64.b64decode(self.ask("fetch", name, *(["--despite-gate"] if despite_gate else [])))
        out.mkdir(parents=True, exist_ok=True)
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            return unpack(tar, out)


def operated(namespace: str, release: str, context: str | None) -> Operated:
    """The aggregator that an operator's command is about: a release in a cluster, or the sandbox of the environment."""
    if folder := os.environ.get(SANDBOX):
        from fedsynth.sandbox.operator import SandboxAggregator

        return SandboxAggregator(Path(folder))
    from fedsynth.cluster.api import Cluster
    from fedsynth.cluster.runs import Aggregator

    return Aggregator(Cluster(namespace, context), release)
