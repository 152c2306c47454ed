"""Processes that outlive the command that started them: noted in a file, known again by number and birth.

A number alone may by now be somebody else's process, so the moment of its start is noted beside it; nothing is ever
signalled that was not started here. Each process leads a group of its own, and is ended with what it started.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from fedsynth.sandbox.programs import Program
from synth.messages.archive import write_durably

GRACE_SECONDS = 8.0
POLL_SECONDS = 0.1


class Processes:
    """Those of one sandbox, by name: 'aggregator/superlink', 'north/worker', …"""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / "processes.json"

    def start(self, name: str, program: Program) -> None:
        """Start it, unless it runs."""
        if self.is_alive(name):
            return
        log = self.log(name)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            started = subprocess.Popen(
                program.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=program.whole_environment(self.folder / "flwr"),
                cwd=self.folder,
                start_new_session=True,
            )
        with self._noted() as known:
            known[name] = {"pid": started.pid, "born": born(started.pid)}

    def log(self, name: str) -> Path:
        return self.folder / "logs" / f"{name.replace('/', '-')}.log"

    def names(self) -> list[str]:
        return list(self._read())

    def is_alive(self, name: str) -> bool:
        return self._alive(self._read().get(name))

    def alive(self) -> list[str]:
        return [name for name, each in self._read().items() if self._alive(each)]

    def pid(self, name: str) -> int:
        return int(self._read()[name]["pid"])

    def kill(self, names: Iterable[str]) -> list[str]:
        """At once, as a power cut would."""
        killed = []
        for name in names:
            if self.is_alive(name):
                _signal(self.pid(name), signal.SIGKILL)
                killed.append(name)
        self._await_end(killed, GRACE_SECONDS)
        return killed

    def end(self, names: Iterable[str]) -> list[str]:
        """Asked first, and killed if they do not listen."""
        ended = [name for name in names if self.is_alive(name)]
        for name in ended:
            _signal(self.pid(name), signal.SIGTERM)
        self._await_end(ended, GRACE_SECONDS)
        self.kill(ended)
        return ended

    def _await_end(self, names: list[str], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while any(map(self.is_alive, names)) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)

    def _alive(self, each: dict[str, Any] | None) -> bool:
        return each is not None and born(each["pid"]) == each["born"] is not None

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            found: dict[str, dict[str, Any]] = json.loads(self.file.read_bytes())
        except FileNotFoundError:
            return {}
        return found

    @contextlib.contextmanager
    def _noted(self) -> Iterator[dict[str, dict[str, Any]]]:
        with (self.folder / "processes.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            known = self._read()
            yield known
            write_durably(self.file, json.dumps(known, indent=1).encode())


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, number)


def born(pid: int) -> str | None:
    """When the process began, in whatever form the system tells; None: there is none, or only its remains."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)  # one of our own that ended
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if fields[0] == "Z" else fields[19]
    told = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return told.stdout.strip() or None
