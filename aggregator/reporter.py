"""A `Watch` for people who are elsewhere: progress as a file on the volume, as log lines, and as Prometheus metrics."""

from __future__ import annotations

import datetime as dt
import json
import logging
import sys
import time
from pathlib import Path
from typing import Any

from aggregator.desks import RunFolder
from synth.archive import write_durably
from synth.errors import FedsynthError
from synth.plan import Plan

log = logging.getLogger("aggregator")

REPORT_SECONDS = 1.0  # while parties are waited for


class Reporter:
    """Everything it writes is public: computed from the plan and opened sums."""

    def __init__(self, plan: Plan, folder: RunFolder, flower_run: str, metrics: Path | None) -> None:
        self.plan, self.folder, self.metrics = plan, folder, metrics
        self.told = 0.0
        self.progress: dict[str, Any] = {
            "plan": plan.name,
            "digest": plan.digest(),
            "flower_run": flower_run,
            "state": "running",
            "stage": "waiting for parties",
            "parties": [party.name for party in plan.parties],
            "connected": None,
            "round": 0,
            "rounds": None,
            "losses": {},
            "epsilon": None,
            "began": _now(),
            "error": None,
            "withheld": None,
        }
        self._write()

    def connected(self, count: int) -> None:
        """Told again and again while too few parties are connected."""
        if count != self.progress["connected"] or time.monotonic() - self.told > REPORT_SECONDS:
            self._write(connected=count)

    def stage(self, text: str) -> None:
        self._write(stage=text)

    def round(self, done: int, total: int, losses: dict[str, float], epsilon: float | None) -> None:
        self._write(round=done, rounds=total, losses=losses, epsilon=epsilon, connected=len(self.plan.parties))

    def failed(self, error: FedsynthError) -> None:
        self._write(state="failed", error={"code": error.code, "message": str(error)})

    def finished(self, epsilon: float | None, withheld: str | None = None) -> None:
        """`withheld` says why the gate is closed."""
        stage = "withheld by the plan's gate" if withheld else "released"
        self._write(state="finished", stage=stage, epsilon=epsilon, withheld=withheld)

    def _write(self, **changes: Any) -> None:
        self.told = time.monotonic()
        self.progress |= changes | {"updated": _now()}
        self.folder.report(self.progress)
        if self.metrics is not None:
            write_durably(self.metrics, metrics_text(self.progress).encode())
            self.metrics.chmod(0o644)
        sys.stdout.write(json.dumps({"time": self.progress["updated"], "plan": self.plan.name} | changes) + "\n")


def metrics_text(progress: dict[str, Any]) -> str:
    """The newest run in Prometheus' text format."""
    labels = f'{{plan="{progress["plan"]}",digest="{progress["digest"][:12]}"}}'
    values = {
        "fedsynth_run_running": int(progress["state"] == "running"),
        "fedsynth_run_failed": int(progress["state"] == "failed"),
        "fedsynth_run_withheld": int(progress.get("withheld") is not None),
        "fedsynth_run_round": progress["round"],
        "fedsynth_run_rounds": progress["rounds"],
        "fedsynth_run_parties": len(progress["parties"]),
        "fedsynth_run_parties_connected": progress["connected"],
        "fedsynth_run_epsilon": progress["epsilon"],
        "fedsynth_run_updated_seconds": int(dt.datetime.fromisoformat(progress["updated"]).timestamp()),
    }
    lines = [f"# TYPE {name} gauge\n{name}{labels} {value}" for name, value in values.items() if value is not None]
    return "\n".join(["fedsynth_up 1", *lines]) + "\n"


def _now() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
