"""Progress for people: a bar with round, losses, ε spent and time left; plain lines where there is no terminal."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from aggregator.states import RunState


class ConsoleWatch:
    """A `Watch` on a terminal."""

    def __init__(self, console: Console, epsilon_name: str) -> None:
        self.console = console
        self.epsilon_name = epsilon_name  # "ε", or "nominal ε" in the faithful profile
        self.progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[facts]}"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self.task = self.progress.add_task("starting", total=None, facts="")

    def __enter__(self) -> ConsoleWatch:
        self.progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.progress.stop()

    def stage(self, text: str, state: RunState = RunState.running) -> None:
        self.progress.update(self.task, description=text, total=None, completed=0, facts="")
        if not self.console.is_terminal:
            self.console.print(text)

    def round(self, done: int, total: int, losses: dict[str, float], epsilon: float | None) -> None:
        facts = " ".join(f"{name} {value:.3f}" for name, value in losses.items())
        if epsilon is not None:
            facts += f" {self.epsilon_name} {epsilon:.3f}"
        self.progress.update(self.task, completed=done, total=total, facts=facts.strip())
        if not self.console.is_terminal:
            self.console.print(f"  round {done} of {total} {facts.strip()}")
