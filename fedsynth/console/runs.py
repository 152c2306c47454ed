"""Runs as the page shows them, read from what the aggregator leaves on its volume. Everything there is public."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedsynth.console.site import ago

TONES = {
    "released": "good",
    "finished": "good",
    "withheld": "poor",
    "failed": "poor",
    "interrupted": "fair",
    "stopped": "fair",
    "waiting": "fair",
}
ENDED = ("released", "finished", "withheld", "failed", "stopped", "interrupted")
CONNECTED = re.compile(r'^fedsynth_party_connected\{party="([^"]+)"\} ([01])$', re.MULTILINE)


@dataclass(frozen=True)
class RunView:
    """One run; what an older version did not report is empty."""

    digest: str
    plan: str
    state: str
    stage: str
    parties: list[str]
    round: int
    rounds: int | None
    epsilon: float | None
    losses: dict[str, float]
    began: str
    updated: str
    since: str
    waiting_for: list[str] = field(default_factory=list)
    waiting_why: str = ""
    unanswered: list[str] = field(default_factory=list)
    round_seconds: float | None = None
    message: str = ""
    remedy: str = ""

    @property
    def tone(self) -> str:
        return TONES.get(self.state, "unknown")

    @property
    def is_ended(self) -> bool:
        return self.state in ENDED

    @property
    def words(self) -> str:
        """What the run is doing, for whom it waits."""
        if self.waiting_for:
            why = f": {self.waiting_why}" if self.waiting_why else ""
            return f"for {', '.join(self.waiting_for)}, since {self.since[11:19]} UTC{why}"
        if self.unanswered and not self.is_ended:
            return f"{self.stage}; no answer yet from {', '.join(self.unanswered)}"
        return self.message or self.stage

    @property
    def seconds_left(self) -> float | None:
        """From the pace so far; None where there is none to go by."""
        if self.is_ended or not self.rounds or not self.round:
            return None
        pace = self.round_seconds or (ago(self.began) - ago(self.updated)) / self.round
        return max(0.0, pace * (self.rounds - self.round))


class Runs:
    """The runs of a volume, each file read again only when it changed."""

    def __init__(self, state: Path, metrics: Path | None) -> None:
        self.state, self.metrics = state, metrics
        self._read: dict[Path, tuple[int, RunView]] = {}

    def all(self) -> list[RunView]:
        """The latest first."""
        found = [view for path in self._files() if (view := self._view(path)) is not None]
        return sorted(found, key=lambda view: view.updated, reverse=True)

    def get(self, digest: str) -> RunView | None:
        return next((view for view in self.all() if view.digest == digest), None)

    def folder(self, digest: str) -> Path:
        return self.state / "runs" / digest

    def connected(self) -> dict[str, bool]:
        """By party, from what the runner writes for monitoring: this page needs no door to the SuperLink."""
        text = self.metrics.read_text() if self.metrics is not None and self.metrics.exists() else ""
        return {party: flag == "1" for party, flag in CONNECTED.findall(text)}

    def news(self) -> str:
        files = [*self._files(), self.state / "audit.jsonl", *([self.metrics] if self.metrics else [])]
        return str([(path.name, _stamp(path)) for path in files[-3:]]) + str(sum(map(_stamp, files)))

    def _files(self) -> list[Path]:
        return list((self.state / "runs").glob("*/progress.json"))

    def _view(self, path: Path) -> RunView | None:
        stamp = _stamp(path)
        known = self._read.get(path)
        if known is None or known[0] != stamp:
            try:
                view = _from(json.loads(path.read_bytes()))
            except (OSError, ValueError, KeyError):  # being removed, or of no version that we know
                return None
            self._read[path] = known = (stamp, view)
        return known[1]


def _from(found: dict[str, Any]) -> RunView:
    reason = found.get("reason") or found.get("error") or {}
    state = "withheld" if found.get("withheld") else "released" if found["state"] == "finished" else found["state"]
    same = ("digest", "plan", "stage", "parties", "round", "rounds", "epsilon", "losses", "began", "updated")
    new = ("waiting_for", "waiting_why", "unanswered", "round_seconds")
    return RunView(
        state=state,
        since=found.get("since", found["updated"]),
        message=found.get("withheld") or reason.get("message", ""),
        remedy=reason.get("remedy", ""),
        **{name: found[name] for name in same},
        **{name: found[name] for name in new if name in found},
    )


def _stamp(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
