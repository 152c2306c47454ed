"""Takes up runs whose process is gone: killed, moved to another node, cut off from the SuperLink for too long.

It looks at the volume, not at Flower: a run that calls itself active while nobody holds its folder has lost its
process, whatever killed that. With `run.resume: automatic` it is queued again and submitted on loopback; with `manual`
it is marked interrupted and waits for `fedsynth resume`. Resuming spends nothing twice, so it may be done at any time.
A run that is interrupted again and again without getting on is left to a person after the plan's patience.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import httpx

from aggregator.server.run_folder import RunFolder, all_runs
from aggregator.states import ACTIVE, Reason, RunState, Standing, now_text
from synth.plan import parse_plan

PAUSES_SECONDS = (5.0, 15.0, 30.0, 60.0)  # before the next attempt, if the last one got nowhere
NOTE_SECONDS = 3.0  # between looks at Flower's list
LOST_PROCESS = "its process is gone (the pod was replaced, or the process was killed)."


class Submits(Protocol):
    """The part of `Control` that is used here."""

    def submit(self, plan: dict[str, Any], who: str) -> dict[str, Any]: ...

    def begun(self) -> list[tuple[str, str]]: ...

    def outcome(self, flower_run: str) -> tuple[str, str]: ...

    def stop(self, flower_run: str) -> dict[str, Any]: ...


@dataclass
class _Attempts:
    """At one round of one run."""

    round: int
    began: float
    count: int = 0
    again: float = 0.0  # not before


@dataclass
class Supervisor:
    state: Path
    control: Submits
    automatic: bool
    patience_seconds: float
    clock: Callable[[], float] = time.monotonic
    attempts: dict[str, _Attempts] = field(default_factory=dict)
    noted: set[str] = field(default_factory=set)
    next_note: float = 0.0

    def look(self) -> None:
        """Once over all runs; a SuperLink that is away is asked at the next look."""
        with suppress(httpx.HTTPError):
            self._note_new()
        for run in all_runs(self.state):
            standing = run.standing
            if standing is None or not self._is_orphaned(run, standing):
                continue
            try:
                self._take_up(run, standing)
            except httpx.HTTPStatusError:
                continue
            except httpx.HTTPError:
                return

    def _note_new(self) -> None:
        """A run that was submitted is queued, and known by its folder, before its process begins: one whose process
        dies in its first seconds would leave no trace otherwise."""
        if self.clock() < self.next_note:
            return
        self.next_note = self.clock() + NOTE_SECONDS
        for flower_run, text in self.control.begun():
            if flower_run in self.noted:
                continue
            self.noted.add(flower_run)
            plan = parse_plan(json.loads(text))
            folder = RunFolder.of(self.state, plan)
            if folder.standing is None and not folder.is_taken:
                folder.submitted(plan)
                new = Standing.new(plan.name, plan.digest(), [party.name for party in plan.parties], now_text())
                self._report(folder, new.to(RunState.queued, now_text(), flower_run=flower_run))

    def _is_orphaned(self, run: RunFolder, standing: Standing) -> bool:
        if standing.state not in ACTIVE | {RunState.queued, RunState.interrupted}:
            return False
        if standing.state is RunState.interrupted and not self.automatic:
            return False
        return not run.is_taken

    def _take_up(self, run: RunFolder, standing: Standing) -> None:
        if not self.automatic:
            remedy = f"Nothing is lost: `fedsynth resume {standing.plan}`."
            self._report(run, standing.to(RunState.interrupted, now_text(), reason=_reason(standing, remedy)))
            return
        if standing.state is RunState.queued and not self.control.outcome(standing.flower_run)[0].startswith(
            ("finished", "unknown")
        ):
            return  # submitted, and not begun yet
        made = self._attempts_at(run, standing)
        if self.clock() - made.began > self.patience_seconds:
            remedy = f"See `fedsynth logs`, then `fedsynth resume {standing.plan}`."
            self._report(run, standing.to(RunState.failed, now_text(), reason=_reason(standing, remedy)))
        elif self.clock() >= made.again:
            made.count += 1
            made.again = self.clock() + PAUSES_SECONDS[min(made.count, len(PAUSES_SECONDS)) - 1]
            self._queue(run, standing, self._submitted_again(run, standing))
        elif standing.state is not RunState.queued:
            self._queue(run, standing, standing.flower_run)

    def _attempts_at(self, run: RunFolder, standing: Standing) -> _Attempts:
        """Attempts are counted anew when the run has come further."""
        known = self.attempts.get(run.path.name)
        if known is None or known.round != standing.round:
            known = self.attempts[run.path.name] = _Attempts(standing.round, self.clock())
        return known

    def _submitted_again(self, run: RunFolder, standing: Standing) -> str:
        if standing.flower_run:
            with suppress(httpx.HTTPStatusError):  # Flower knows already that it has ended
                self.control.stop(standing.flower_run)  # it would believe in it for another minute
        word = self.control.submit(json.loads((run.path / "plan.json").read_bytes()), who="supervisor")
        return str(word["flower_run"])

    def _queue(self, run: RunFolder, standing: Standing, flower_run: str) -> None:
        resumed = standing.resumed + (flower_run != standing.flower_run)
        facts = {"flower_run": flower_run, "resumed": resumed, "stage": "queued to be resumed"}
        why = _reason(standing, "It is resumed by itself.")
        self._report(run, standing.to(RunState.queued, now_text(), reason=why, **facts))

    def _report(self, run: RunFolder, standing: Standing) -> None:
        run.report(standing)
        line = {"time": standing.updated, "level": "info", "plan": standing.plan, "state": standing.state}
        sys.stdout.write(json.dumps(line | {"message": standing.in_words()}) + "\n")
        sys.stdout.flush()


def _reason(standing: Standing, remedy: str) -> Reason:
    before = standing.reason or Reason("interrupted", LOST_PROCESS)
    return Reason(before.code, before.message, remedy)
