"""What a person waiting for a run may see. Every number here is public: computed from the plan and opened sums."""

from __future__ import annotations

from typing import Protocol

from aggregator.states import RunState


class Watch(Protocol):
    """Told about progress; the command line draws bars, a cluster writes log lines and metrics."""

    def stage(self, text: str, state: RunState = RunState.running) -> None:
        """A new stage of the run began."""

    def round(self, done: int, total: int, losses: dict[str, float], epsilon: float | None) -> None:
        """An ask was absorbed; `epsilon` is what the most exposed party has spent so far (None: no finite bound)."""


class Silent:
    """Nobody is waiting."""

    def stage(self, text: str, state: RunState = RunState.running) -> None:
        pass

    def round(self, done: int, total: int, losses: dict[str, float], epsilon: float | None) -> None:
        pass
