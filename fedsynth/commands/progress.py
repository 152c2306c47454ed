"""Progress for people: a bar with round, ε spent, losses and time left; plain lines where there is no terminal.

It fits 80 columns: the bar is short, a total that is not known is not shown, and what does not fit beside the time left
goes to a second line instead of pushing it out. In a notebook the bar is a display that is replaced in place.
"""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TaskID, TextColumn
from rich.table import Column
from rich.text import Text

from aggregator.states import RunState

BAR_CHARACTERS = 16


class _TimeLeft(ProgressColumn):
    """Minutes and seconds, once they can be told."""

    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        left = task.time_remaining
        if task.total is None or left is None or task.finished:
            return Text("")
        minutes, seconds = divmod(round(left), 60)
        hours, minutes = divmod(minutes, 60)
        clock = f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
        return Text(f"{clock} left", style="cyan")


class ConsoleWatch:
    """A `Watch` on a terminal or in a notebook."""

    def __init__(self, console: Console, epsilon_name: str) -> None:
        self.console = console
        self.epsilon_name = epsilon_name  # "ε", or "nominal ε" in the faithful profile
        self.is_live = console.is_terminal or console.is_jupyter
        whole = Column(no_wrap=True)
        self.progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", table_column=whole),
            BarColumn(BAR_CHARACTERS),
            TextColumn("{task.fields[rounds]}", table_column=whole),
            _TimeLeft(table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[facts]}", table_column=Column(overflow="fold")),
            console=console,
            disable=not self.is_live,
        )
        self.task: TaskID | None = None

    def __enter__(self) -> ConsoleWatch:
        self.progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._end_stage()
        self.progress.stop()

    def stage(self, text: str, state: RunState = RunState.running) -> None:
        """A task of its own: rich keeps the total of one that is used again."""
        self._end_stage()
        self.task = self.progress.add_task(text, total=None, rounds="", facts="")
        if not self.is_live:
            self.console.print(text)

    def round(self, done: int, total: int, losses: dict[str, float], epsilon: float | None) -> None:
        facts = [] if epsilon is None else [f"{self.epsilon_name} {epsilon:.3f}"]
        facts += [f"{name} {value:.3f}" for name, value in losses.items()]
        if self.task is not None:
            said = " ".join(facts)
            self.progress.update(self.task, completed=done, total=total, rounds=f"{done}/{total}", facts=said)
        if not self.is_live:
            self.console.print(" ".join([f"  round {done} of {total}", *facts]))

    def _end_stage(self) -> None:
        if self.task is not None:
            self.progress.remove_task(self.task)
            self.task = None
