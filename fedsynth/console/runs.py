"""Runs as the page shows them, read from what the aggregator leaves on its volume. Everything there is public."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from aggregator.states import ENDED, RunState, Standing
from synth.audit_log import FILE

TONES = {
    RunState.released: "good",
    RunState.withheld: "poor",
    RunState.failed: "poor",
    RunState.interrupted: "fair",
    RunState.stopped: "fair",
    RunState.waiting: "fair",
}
CONNECTED = re.compile(r'^fedsynth_party_connected\{party="([^"]+)"\} ([01])$', re.MULTILINE)


@dataclass(frozen=True)
class RunView:
    """One run's standing, and how a page shows it."""

    standing: Standing

    @property
    def tone(self) -> str:
        return TONES.get(self.standing.state, "unknown")

    @property
    def is_ended(self) -> bool:
        return self.standing.state in ENDED

    @property
    def words(self) -> str:
        """What the run is doing, or for whom it waits and since when."""
        state = self.standing.state  # which stands beside it
        words = self.standing.in_words().removeprefix(f"{state}: ").removeprefix("waiting ")
        return "" if words == state else words

    @property
    def seconds_left(self) -> float | None:
        """From the pace of the last round; None where there is none to go by."""
        run = self.standing
        if self.is_ended or run.state is RunState.waiting or not run.rounds or run.round_seconds is None:
            return None
        return run.round_seconds * (run.rounds - run.round)


class Runs:
    """The runs of a volume, each file read again only when it changed."""

    def __init__(self, state: Path, metrics: Path | None) -> None:
        self.state, self.metrics = state, metrics
        self._read: dict[Path, tuple[int, RunView]] = {}

    def all(self) -> list[RunView]:
        """The latest first."""
        found = [view for path in self._files() if (view := self._view(path)) is not None]
        return sorted(found, key=lambda view: view.standing.updated, reverse=True)

    def get(self, digest: str) -> RunView | None:
        return next((view for view in self.all() if view.standing.digest == digest), None)

    def folder(self, digest: str) -> Path:
        return self.state / "runs" / digest

    def connected(self) -> dict[str, bool]:
        """By party, from what the runner writes for monitoring: this page needs no door to the SuperLink."""
        text = self.metrics.read_text() if self.metrics is not None and self.metrics.exists() else ""
        return {party: flag == "1" for party, flag in CONNECTED.findall(text)}

    def news(self) -> str:
        stamps = [_stamp(path) for path in [*self._files(), self.state / FILE]]
        return f"{len(stamps)} {sum(stamps)} {self.connected()}"  # the metrics are written anew all the time

    def _files(self) -> list[Path]:
        return list((self.state / "runs").glob("*/progress.json"))

    def _view(self, path: Path) -> RunView | None:
        stamp = _stamp(path)
        known = self._read.get(path)
        if known is None or known[0] != stamp:
            try:
                view = RunView(Standing.from_json(json.loads(path.read_bytes())))
            except (OSError, ValueError, KeyError, TypeError):  # being removed, or of no version that we know
                return None
            self._read[path] = known = (stamp, view)
        return known[1]


def _stamp(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
