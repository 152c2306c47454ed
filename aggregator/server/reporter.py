"""A `Watch` for people who are elsewhere: a run's standing as a file on the volume and as log lines.

The state machine is aggregator/states.py; this only says into which state the run goes, and writes what changed.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from aggregator.remedies import reason_of
from aggregator.server.run_folder import RunFolder
from aggregator.states import ACTIVE, Reason, RunState, Standing, now_text
from synth.errors import FedsynthError
from synth.plan import Plan

_SAID = ("state", "stage", "waiting_for", "waiting_why", "unanswered", "round", "rounds", "losses", "epsilon", "reason")


class Reporter:
    """Everything it writes is public: computed from the plan and opened sums."""

    def __init__(self, plan: Plan, folder: RunFolder, flower_run: str) -> None:
        """A run that is taken up again begins where its last report stood."""
        self.plan, self.folder, self.last_round = plan, folder, 0.0
        now, names = now_text(), [party.name for party in plan.parties]
        self.standing = folder.standing or Standing.new(plan.name, plan.digest(), names, now)
        if self.standing.state in ACTIVE:  # its process is gone: this one holds the folder
            self.standing = self.standing.to(RunState.queued, now)
        self._go(RunState.admitting, flower_run=flower_run, stage="starting", reason=None, unanswered=[])

    def waiting(self, parties: list[str], why: str) -> None:
        self._write(self.standing.wait(parties, why, now_text()))

    def unanswered(self, parties: list[str]) -> None:
        self._go(self.standing.state, unanswered=parties)

    def stage(self, text: str, state: RunState = RunState.running) -> None:
        self._go(state, stage=text, unanswered=[])

    def round(self, done: int, total: int, losses: dict[str, float], epsilon: float | None) -> None:
        now = time.monotonic()
        seconds = round(now - self.last_round, 3) if self.last_round else None
        self.last_round = now
        facts = {"round": done, "rounds": total, "losses": losses, "epsilon": epsilon}
        self._go(RunState.running, round_seconds=seconds, **facts)

    def failed(self, error: FedsynthError) -> None:
        if not self._was_stopped():
            self._go(RunState.failed, reason=reason_of(error, self.plan.name))

    def interrupted(self, code: str, message: str) -> None:
        """Cut short by what passes: the supervisor takes the run up again, or a person does."""
        if not self._was_stopped():
            remedy = f"Nothing is lost: `fedsynth resume {self.plan.name}`."
            self._go(RunState.interrupted, reason=Reason(code, message, remedy))

    def finished(self, epsilon: float | None, withheld: str | None = None) -> None:
        """`withheld` says why the gate is closed."""
        stage = "withheld by the plan's gate" if withheld else "released"
        state = RunState.withheld if withheld else RunState.released
        self._go(state, stage=stage, epsilon=epsilon, withheld=withheld)

    def _was_stopped(self) -> bool:
        """A person's word stands: what a stopped process runs into afterwards is no failure."""
        on_disk = self.folder.standing
        return on_disk is not None and on_disk.state is RunState.stopped

    def _go(self, state: RunState, **changes: Any) -> None:
        self._write(self.standing.to(state, now_text(), **changes))

    def _write(self, standing: Standing) -> None:
        if standing is self.standing:
            return
        before, now = self.standing.to_json(), standing.to_json()
        self.standing = standing
        self.folder.report(standing)
        changed = {name: now[name] for name in _SAID if now[name] != before[name]}
        line = {"time": standing.updated, "level": "info", "plan": self.plan.name, "message": standing.in_words()}
        sys.stdout.write(json.dumps(line | changed) + "\n")
