"""The aggregator for its operator's monitoring, in Prometheus' text format: who is connected, how far the runs are.

Everything here is public: computed from plans and opened sums. The edge serves the file; the runner writes it again and
again, so it also tells of runs whose process is gone.
"""

from __future__ import annotations

import datetime as dt
import os
import threading
import time
from pathlib import Path
from typing import Any

import httpx

from aggregator.server.control import Control
from synth.messages.archive import write_durably

EVERY_SECONDS = 15.0


def keep_written(path: Path, control: Control, state: Path) -> threading.Thread:
    """Write the file from now on, in a thread of its own."""

    def write() -> None:
        while True:
            write_metrics(path, control, state)
            time.sleep(EVERY_SECONDS)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    return thread


def write_metrics(path: Path, control: Control, state: Path) -> None:
    try:
        text = metrics_text(control.nodes(), control.runs(state))
    except httpx.HTTPError:  # the SuperLink restarts
        text = _gauge("fedsynth_up", {}, 0)
    write_durably(path, text.encode())
    path.chmod(0o644)  # the edge is another user's process


def metrics_text(nodes: list[dict[str, Any]], runs: list[dict[str, Any]]) -> str:
    text = _gauge("fedsynth_up", {}, 1)
    for node in nodes:
        text += _gauge("fedsynth_party_connected", {"party": node["party"]}, int(node["online"]))
    for run in runs:
        labels = {"plan": run["plan"], "digest": run["digest"][:12]}
        for name, value in _run(run).items():
            text += _gauge(f"fedsynth_run_{name}", labels, value)
    return text


def _run(run: dict[str, Any]) -> dict[str, float | None]:
    return {
        "running": int(run["state"] == "running"),
        "failed": int(run["state"] in ("failed", "interrupted")),
        "withheld": int(run.get("withheld") is not None),
        "round": run["round"],
        "rounds": run["rounds"],
        "parties": len(run["parties"]),
        "parties_connected": run["connected"],
        "epsilon": run["epsilon"],
        "updated_seconds": int(dt.datetime.fromisoformat(run["updated"]).timestamp()),
    }


def _gauge(name: str, labels: dict[str, str], value: float | None) -> str:
    if value is None:
        return ""
    inside = ",".join(f'{label}="{text}"' for label, text in labels.items())
    return f"{name}{{{inside}}} {value}\n" if inside else f"{name} {value}\n"


def start_if_asked() -> None:
    """FEDSYNTH_METRICS names the file, in the pod that also has FEDSYNTH_CONTROL and FEDSYNTH_STATE."""
    if path := os.environ.get("FEDSYNTH_METRICS"):
        control = Control(os.environ["FEDSYNTH_CONTROL"], Path(os.environ["FEDSYNTH_CONTROL_FILES"]))
        keep_written(Path(path), control, Path(os.environ["FEDSYNTH_STATE"]))
