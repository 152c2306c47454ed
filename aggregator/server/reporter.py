"""A `Watch` for people who are elsewhere: progress as a file on the volume and as log lines."""

from __future__ import annotations

import datetime as dt
import json
import logging
import sys
import time
from typing import Any

from aggregator.server.run_folder import RunFolder
from synth.errors import FedsynthError
from synth.plan import Plan

log = logging.getLogger("aggregator")

REPORT_SECONDS = 1.0  # while parties are waited for


class Reporter:
    """Everything it writes is public: computed from the plan and opened sums."""

    def __init__(self, plan: Plan, folder: RunFolder, flower_run: str) -> None:
        self.plan, self.folder = plan, folder
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
        sys.stdout.write(json.dumps({"time": self.progress["updated"], "plan": self.plan.name} | changes) + "\n")


def _now() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
