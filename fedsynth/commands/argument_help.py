"""Keeps the help of arguments. click 8.5 gave arguments a help of its own and empties the one that typer 0.20, which
Flower pins, has already set; options are not affected. Not needed once both know of each other."""

from __future__ import annotations

from typing import Any

from typer import core, main


class Argument(core.TyperArgument):
    """An argument whose help is still there after click has set it up."""

    def __init__(self, *, help: str | None = None, **rest: Any) -> None:
        super().__init__(help=help, **rest)
        self.help = help


def keep() -> None:
    """From now on, in every command of this process."""
    vars(main)["TyperArgument"] = Argument
