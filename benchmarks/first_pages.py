"""The sandbox and the consoles, as somebody waits for them: parts of `python -m benchmarks.first_hour`.

- `sandbox_seconds`: `fedsynth sandbox up` in an empty folder until every party is connected, consoles served;
- `console_paint_seconds`: from asking for the operator's page, 1,000 runs listed, to its first contentful paint, as
  Chromium reports it; the median of five loads, the first of them with empty caches.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from aggregator.states import RunState, Standing, now_text
from benchmarks.browser import Browser, browser

ROOT = Path(__file__).resolve().parents[1]
COMMAND = [sys.executable, "-c", "from fedsynth.cli import main; main()"]
LISTED = 1_000  # runs
LOADS = 5
PORT = 8677
PAINT = "return performance.getEntriesByName('first-contentful-paint').map(each => each.startTime)"


def sandbox_seconds(folder: Path) -> dict[str, Any]:
    place = ["--folder", str(folder / "sandbox")]
    began = time.perf_counter()
    try:
        _fedsynth("sandbox", "up", *place, "--no-browse")
        return {"sandbox_seconds": round(time.perf_counter() - began, 1)}
    finally:
        _fedsynth("sandbox", "down", *place)


def console_paint(folder: Path) -> dict[str, Any]:
    for number in range(LISTED):
        _leave_run(folder / "state", number)
    token, arguments = folder / "token", ["--state", str(folder / "state"), "--port", str(PORT)]
    serving = subprocess.Popen(
        [*COMMAND, "console", "aggregator", *arguments, "--token-file", str(token)], env=_environment()
    )
    try:
        while not token.exists():
            time.sleep(0.1)
        address = f"http://127.0.0.1:{PORT}/"
        with browser(folder / "profile") as window:
            window.open(
                f"{address}?token={token.read_text()}"
            )  # leaves a cookie; the first load may wait for the server
            window.wait("the list of runs", lambda: _listed(window) == LISTED)
            return {"console_paint_seconds": statistics.median(_painted(window, address) for _ in range(LOADS))}
    finally:
        serving.terminate()
        serving.wait()


def _painted(window: Browser, address: str) -> float:
    window.open(address)
    window.wait("the first paint", lambda: bool(window.run(PAINT)))
    return round(float(window.run(PAINT)[0]) / 1000, 3)


def _listed(window: Browser) -> int:
    return int(window.run("return document.querySelectorAll('tbody tr').length"))


def _leave_run(state: Path, number: int) -> None:
    now, digest = now_text(), f"{number:064x}"
    run = Standing(
        f"plan-{number}", digest, ["north", "south"], state=RunState.released, stage="training", round=2, rounds=2,
        began=now, updated=now, since=now,
    )  # fmt: skip
    folder = state / "runs" / digest
    folder.mkdir(parents=True)
    (folder / "progress.json").write_text(json.dumps(run.to_json()))


def _fedsynth(*arguments: str) -> None:
    subprocess.run([*COMMAND, *arguments], env=_environment(), check=True, stdout=subprocess.DEVNULL)


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT)}
