"""What runs leave on the aggregator's volume: one folder each, named by the plan's digest.

runs/DIGEST/plan.json        the plan, as submitted
runs/DIGEST/progress.json    its standing (aggregator/states.py), for people who wait
runs/DIGEST/work/            the checkpoint
runs/DIGEST/release/         table, model, certificate; WITHHELD.txt if the plan's gate is closed
"""

from __future__ import annotations

import base64
import fcntl
import io
import json
import shutil
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from aggregator.states import Standing
from synth.errors import InputError
from synth.messages.archive import write_durably

if TYPE_CHECKING:  # `fedsynth status` starts a process that reads these folders; it need not load pandas for that
    from synth.plan import Plan

PROGRESS, LOCK = "progress.json", "lock"
LOCK_ATTEMPTS, LOCK_PAUSE_SECONDS = 20, 0.1


@dataclass(frozen=True)
class RunFolder:
    """One run's place on the volume."""

    path: Path

    @classmethod
    def of(cls, state: Path, plan: Plan) -> RunFolder:
        return cls(state / "runs" / plan.digest())

    @property
    def standing(self) -> Standing | None:
        """Where the run stands by its own report; None before it made one."""
        try:
            return Standing.from_json(json.loads((self.path / PROGRESS).read_bytes()))
        except FileNotFoundError:
            return None

    def report(self, standing: Standing) -> None:
        write_durably(self.path / PROGRESS, json.dumps(standing.to_json(), indent=1).encode())

    @property
    def is_taken(self) -> bool:
        """Whether a process carries the run out now. The lock goes with the process, whatever kills it."""
        try:
            with (self.path / LOCK).open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def forget(self) -> None:
        """Remove checkpoint, report and release. What parties were charged is in their ledgers and stays."""
        shutil.rmtree(self.path)

    @property
    def name(self) -> str:
        """Of the plan."""
        return self.standing.plan if self.standing else ""

    @contextmanager
    def taken(self, plan: Plan) -> Iterator[None]:
        """Hold the folder for one process; refuse a run that is under way or done."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / LOCK).open("w") as lock:
            if not _locked(lock):
                raise InputError(f"plan '{plan.name}' is being carried out already; see `fedsynth status`")
            if (self.path / "release" / "certificate.json").exists():
                raise InputError(
                    f"plan '{plan.name}' was carried out and released; fetch it. To spend again on purpose, give the "
                    "plan another name and have it approved."
                )
            self.submitted(plan)
            yield

    def submitted(self, plan: Plan) -> None:
        """Keep the plan, from which the run can be taken up."""
        self.path.mkdir(parents=True, exist_ok=True)
        content = json.dumps(plan.model_dump(mode="json", by_alias=True), indent=1)
        write_durably(self.path / "plan.json", content.encode())

    def archive(self, despite_gate: bool = False) -> bytes:
        """The release as a tar file; of one that its gate withheld, table and model only if that is asked for."""
        from aggregator.publish import PAPERS, WITHHELD  # loads pandas

        buffer, release = io.BytesIO(), self.path / "release"
        whole = despite_gate or not (release / WITHHELD).exists()
        with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
            for path in sorted(release.iterdir()):
                if whole or path.name in PAPERS:
                    tar.add(path, path.name)
        return buffer.getvalue()


def _locked(lock: IO[str]) -> bool:
    """Take the lock; whoever only looks whether it is free holds it for a moment."""
    for _ in range(LOCK_ATTEMPTS):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(LOCK_PAUSE_SECONDS)
    return False


def all_runs(state: Path) -> list[RunFolder]:
    folder = state / "runs"
    return [RunFolder(path) for path in sorted(folder.iterdir())] if folder.exists() else []


def named(state: Path, name: str) -> RunFolder:
    """A run by its plan's name or the beginning of its digest."""
    found = [run for run in all_runs(state) if run.path.name.startswith(name) or run.name == name]
    if len(found) != 1:
        known = ", ".join(f"{run.name} ({run.path.name[:12]})" for run in all_runs(state)) or "none"
        raise InputError(f"{len(found) or 'no'} runs are called '{name}'; there are: {known}. Give a digest.")
    return found[0]


def as_text(content: bytes) -> str:
    """Bytes through a terminal's pipe."""
    return base64.b64encode(content).decode()
