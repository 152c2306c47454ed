"""Starts a process for every run that is submitted, and survives what the SuperLink goes through meanwhile.

It stands in for Flower's `flower-superexec`, which ends at the first answer it does not expect (a SuperLink whose
SQLite is busy says 500) and takes the runs it started with it. This one waits and asks again, and lets the supervisor
take up what lost its process.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
from flwr.proto.runtime_pb2 import AcquireTaskRequest
from flwr.supercore.constant import TaskType
from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor
from flwr.supercore.runtime import RuntimeHttpClient

from aggregator.server.control import Control
from aggregator.server.snapshot import start_if_asked
from aggregator.server.supervisor import Supervisor
from aggregator.states import now_text
from synth.audit_log import FILE, AuditLog

POLL_SECONDS = 0.5  # each look is a write in the SuperLink's database
AWAY_SECONDS = 2.0

Start = Callable[[str], "subprocess.Popen[bytes]"]  # token → process


def serve(runtime: RuntimeHttpClient, start: Start, supervise: Callable[[], None] = lambda: None) -> None:
    """Ask for runs, for ever. Told to end, it ends the runs too: they continue from their checkpoints."""
    running: list[subprocess.Popen[bytes]] = []
    away = False
    try:
        while True:
            running = [process for process in running if process.poll() is None]  # also buries the dead
            token = _next_run(runtime)
            if (token is None) is not away:
                away = token is None
                line = {"time": now_text(), "message": f"the SuperLink is {'away' if away else 'there'}"}
                sys.stdout.write(json.dumps(line) + "\n")
                sys.stdout.flush()
            if token:
                running.append(start(token))
            supervise()
            time.sleep(POLL_SECONDS)
    finally:
        for process in running:
            process.terminate()


def _next_run(runtime: RuntimeHttpClient) -> str | None:
    """The token of a run that waits, empty if there is none; None while the SuperLink is away."""
    try:
        return runtime.AcquireTask(AcquireTaskRequest(supported_task_types=[TaskType.SERVER_APP])).token
    except httpx.HTTPError:
        time.sleep(AWAY_SECONDS)
        return None


def note_register(state: Path, parties: Path) -> None:
    """Note who may connect, if that is not what was noted last: parties come and go by the chart's values, and a change
    of them starts this process anew."""
    log, register = AuditLog(state / FILE, "aggregator"), json.loads(parties.read_bytes())
    now = sorted(f"{name} {_short_digest(each['nodeKey'])}" for name, each in register.items())
    before: list[str] = next(
        (line["parties"] for line in reversed(log.unchecked()) if line["action"] == "register"), []
    )
    if now != before:
        gone, come = sorted(set(before) - set(now)), sorted(set(now) - set(before))
        log.note("register", "the chart's values", parties=now, admitted=come, revoked=gone)


def _short_digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:16]


def main() -> None:
    """`python -m aggregator.server.runner HOST:PORT CA`, in the SuperLink's pod."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    address, authority = sys.argv[1], sys.argv[2]
    runtime = RuntimeHttpClient.from_server_address(
        server_address=address,
        insecure=False,
        root_certificates=Path(authority).read_bytes(),
        interceptors=[RuntimeVersionHttpInterceptor(component_name="SuperExec")],
    )

    def start(token: str) -> subprocess.Popen[bytes]:
        command = ["flwr-serverapp", "--runtime-api-address", address, "--root-certificates", authority]
        return subprocess.Popen([*command, "--token", token])

    note_register(Path(os.environ["FEDSYNTH_STATE"]), Path(os.environ["FEDSYNTH_PARTIES"]))
    control = Control(os.environ["FEDSYNTH_CONTROL"], Path(os.environ["FEDSYNTH_CONTROL_FILES"]))
    start_if_asked(control)
    serve(runtime, start, _supervisor(control).look)


def _supervisor(control: Control) -> Supervisor:
    patience_seconds = float(os.environ["FEDSYNTH_ANSWER_TIMEOUT_SECONDS"])
    automatic = os.environ.get("FEDSYNTH_RESUME", "automatic") == "automatic"
    return Supervisor(Path(os.environ["FEDSYNTH_STATE"]), control, automatic, patience_seconds)


if __name__ == "__main__":
    main()
