"""One peer, once: in a process of its own, with a limit, its processor seconds and its peak memory."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.environments import ROOT, EnvironmentFailed, python_of
from benchmarks.peers.roster import Peer
from synth.schema import Schema

DELTA = 1e-5
SEED = 0
# The same for everybody. glibc is told to keep large blocks: else it gives each back to the kernel and faults it in
# again, which slows DPCTGAN's gradients by the row most of all.
SURROUNDINGS = {
    "OMP_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "MALLOC_MMAP_THRESHOLD_": str(2**32),
    "MALLOC_TRIM_THRESHOLD_": str(2**33),
}


@dataclass(frozen=True)
class Run:
    """`error` is None when the peer left a table behind."""

    seconds: float
    cpu_seconds: float
    peak_mb: float
    error: str | None


def run(peer: Peer, epsilon: float | None, train: Path, schema: Schema, out: Path, limit_seconds: int) -> Run:
    """The limit is of processor seconds, because a machine that does other things makes a wall clock unfair."""
    job = {
        "method": peer.method,
        "epsilon": epsilon or 0.0,
        "delta": DELTA,
        "seed": SEED,
        "train": str(train),
        "out": str(out),
        "columns": {name: column.model_dump(mode="json") for name, column in schema.columns.items()},
    }
    asked, log = out.with_suffix(".job.json"), out.with_suffix(".log")
    asked.write_text(json.dumps(job))
    try:
        python = Path(sys.executable) if peer.environment is None else python_of(peer.environment)
    except EnvironmentFailed as failure:
        return Run(0.0, 0.0, 0.0, f"cannot be installed: {failure}")
    with log.open("w") as lines:
        return _measured([str(python), "-m", peer.program, str(asked)], lines.fileno(), log, limit_seconds)


def _measured(command: list[str], output: int, log: Path, limit_seconds: int) -> Run:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (limit_seconds, limit_seconds + 5))

    start = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=output, stderr=output, cwd=ROOT, env={**os.environ, **SURROUNDINGS}, preexec_fn=limited
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)  # or Popen would wait for it again
    cpu = used.ru_utime + used.ru_stime
    error = None if process.returncode == 0 else _why(process.returncode, cpu, limit_seconds, log)
    return Run(time.perf_counter() - start, cpu, used.ru_maxrss / 1024, error)


def _why(code: int, cpu_seconds: float, limit_seconds: int, log: Path) -> str:
    spent = cpu_seconds > 0.9 * limit_seconds  # the kernel's count of a limit runs ahead of its count of a child
    if code == -signal.SIGXCPU or (code == -signal.SIGKILL and spent):
        return f"cut after {limit_seconds / 60:.0f} minutes of processor time"
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return f"exit {code}: {lines[-1].strip() if lines else 'no message'}"
