"""The states of a run, in one place: what `fedsynth status`, `run --wait`, metrics, console and logs all show.

    queued ──► admitting ──► running ──► releasing ──► released | withheld
      ▲            │ ▲         │ ▲          │ ▲
      │            ▼ │         ▼ │          ▼ │
      │            waiting for X, since T, because …       (from any of the three, and back to it)
      │
      └── resumed by the supervisor, where `run.resume` is automatic
          interrupted (its process is gone), stopped (by a person), failed (reason and remedy): resumed by a person

docs/run-states.svg is the picture. A `Standing` is one run's state with all that may be shown of it; every number in
it is public, computed from the plan and opened sums. It lies on the volume as progress.json, and every change of it
goes through `to`, which refuses a way that the picture does not have.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from typing import Any


class RunState(StrEnum):
    queued = "queued"  # submitted, or about to be resumed; no process has it yet
    admitting = "admitting"  # the plan's parties are greeted and agree on keys
    waiting = "waiting"  # for parties that are away; goes on by itself
    running = "running"  # asks are answered and summed
    releasing = "releasing"  # the table is drawn, statements are collected
    released = "released"
    withheld = "withheld"  # made, and kept back by the plan's gate
    stopped = "stopped"  # by a person
    failed = "failed"  # with a reason and a remedy
    interrupted = "interrupted"  # its process is gone, and nobody resumes it by itself


ACTIVE = frozenset({RunState.admitting, RunState.waiting, RunState.running, RunState.releasing})
DONE = frozenset({RunState.released, RunState.withheld})
ENDED = DONE | {RunState.stopped, RunState.failed, RunState.interrupted}
_ENDINGS = frozenset({RunState.stopped, RunState.failed, RunState.interrupted, RunState.queued})
NEXT: dict[RunState, frozenset[RunState]] = {
    RunState.queued: _ENDINGS | {RunState.admitting},
    RunState.admitting: _ENDINGS | {RunState.waiting, RunState.running, RunState.releasing},
    RunState.waiting: _ENDINGS | ACTIVE,
    RunState.running: _ENDINGS | {RunState.waiting, RunState.releasing},
    RunState.releasing: _ENDINGS | DONE | {RunState.waiting, RunState.running},  # an assessment asks once more
    RunState.released: frozenset(),
    RunState.withheld: frozenset(),
    RunState.stopped: frozenset({RunState.queued, RunState.admitting}),
    RunState.failed: frozenset({RunState.queued, RunState.admitting, RunState.stopped}),
    RunState.interrupted: frozenset({RunState.queued, RunState.admitting, RunState.stopped, RunState.failed}),
}
_FORMER = {"running": RunState.interrupted, "finished": RunState.released}  # words of progress.json before 0.3


class NoSuchWay(RuntimeError):
    """A fault of ours: the picture has no arrow for this."""


@dataclass(frozen=True)
class Reason:
    """Why a run failed or was interrupted, and what whoever reads it can do."""

    code: str
    message: str
    remedy: str = ""


@dataclass(frozen=True)
class Standing:
    """Where one run stands."""

    plan: str
    digest: str
    parties: list[str]
    began: str
    updated: str
    since: str  # when it entered this state
    state: RunState = RunState.queued
    flower_run: str = ""
    stage: str = "queued"  # what is being done, in words
    before: RunState | None = None  # while waiting: where it goes on
    waiting_for: list[str] = field(default_factory=list)
    waiting_why: str = ""
    unanswered: list[str] = field(default_factory=list)  # who has not answered the question of this moment
    round: int = 0
    rounds: int | None = None
    round_seconds: float | None = None  # what the last round took
    losses: dict[str, float] = field(default_factory=dict)
    epsilon: float | None = None
    reason: Reason | None = None
    withheld: str | None = None
    resumed: int = 0  # how often the supervisor took it up again
    version: int = 1

    @classmethod
    def new(cls, plan: str, digest: str, parties: list[str], now: str) -> Standing:
        return cls(plan, digest, parties, began=now, updated=now, since=now)

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Standing:
        """Also of a file that an earlier version wrote."""
        known = {each.name for each in fields(cls)}
        content = {name: value for name, value in found.items() if name in known}
        state = RunState(_FORMER.get(found["state"], found["state"]) if "version" not in found else found["state"])
        if state is RunState.released and found.get("withheld"):
            state = RunState.withheld
        reason = found.get("reason") or found.get("error")
        before = RunState(found["before"]) if found.get("before") else None
        content |= {"state": state, "reason": Reason(**reason) if reason else None, "before": before}
        content |= {"since": found.get("since", found["updated"])}
        return cls(**content)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def to(self, state: RunState, now: str, **changes: Any) -> Standing:
        """Into a state by an arrow of the picture, or the same state with other facts."""
        if state is not self.state and state not in NEXT[self.state]:
            raise NoSuchWay(f"a run that is {self.state} cannot become {state}")
        since = self.since if state is self.state and "waiting_for" not in changes else now
        if state is not RunState.waiting:
            changes = {"waiting_for": [], "waiting_why": "", "before": None} | changes
        return replace(self, state=state, since=since, updated=now, **changes)

    def wait(self, parties: list[str], why: str, now: str) -> Standing:
        """Wait for these parties, or go on where it was when there are none."""
        if not parties:
            back = self.before or RunState.running
            return self.to(back, now) if self.state is RunState.waiting else self
        if (self.state, self.waiting_for, self.waiting_why) == (RunState.waiting, parties, why):
            return self
        before = self.before if self.state is RunState.waiting else self.state
        return self.to(RunState.waiting, now, waiting_for=parties, waiting_why=why, before=before)

    def in_words(self, now: dt.datetime | None = None) -> str:
        """One line for people: the state, where in it, for whom, since when."""
        lasting = _ago(self.since, now or dt.datetime.now(dt.UTC))
        match self.state:
            case RunState.waiting:
                why = f": {self.waiting_why}" if self.waiting_why else ""
                return f"waiting for {', '.join(self.waiting_for)} since {clock(self.since)} ({lasting}){why}"
            case RunState.running if self.rounds:
                return f"round {self.round} of {self.rounds}" + self._silent()
            case RunState.running | RunState.admitting | RunState.releasing:
                return f"{self.stage}" + self._silent()
            case RunState.queued:
                return self.stage
            case RunState.withheld:
                return f"withheld: {self.withheld}"
            case RunState.failed | RunState.interrupted if self.reason:
                return f"{self.state}: {self.reason.message} {self.reason.remedy}".rstrip()
        return str(self.state)

    def _silent(self) -> str:
        return f" (no answer yet from {', '.join(self.unanswered)})" if self.unanswered else ""


def now_text() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")


def clock(time: str) -> str:
    """The time of day, with the day where it is not today's."""
    moment = dt.datetime.fromisoformat(time)
    today = moment.date() == dt.datetime.now(dt.UTC).date()
    return moment.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M") + " UTC"


def _ago(since: str, now: dt.datetime) -> str:
    seconds = max(0, int((now - dt.datetime.fromisoformat(since)).total_seconds()))
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"
