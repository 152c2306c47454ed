"""Keeps the help of arguments. click 8.5 gave arguments a help of its own and empties the one that typer 0.20, which
Flower pins, has already set; options are not affected. Not needed once both know of each other.

Options that take a number within bounds are shown as `N [x>=1]`, so that what they do has room in 80 columns."""

from __future__ import annotations

from typing import Any

import click
from typer import core, main


class Argument(core.TyperArgument):
    """An argument whose help is still there after click has set it up."""

    def __init__(self, *, help: str | None = None, **rest: Any) -> None:
        super().__init__(help=help, **rest)
        self.help = help


class Option(core.TyperOption):
    """An option whose number is called N instead of INTEGER RANGE."""

    def __init__(self, *, metavar: str | None = None, type: Any = None, **rest: Any) -> None:
        named = "N" if metavar is None and isinstance(type, click.IntRange | click.FloatRange) else metavar
        super().__init__(metavar=named, type=type, **rest)


def keep() -> None:
    """From now on, in every command of this process."""
    vars(main).update(TyperArgument=Argument, TyperOption=Option)
