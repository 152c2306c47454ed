"""Help in paragraphs. typer ends a line where the docstring does and again where the window does; here paragraphs
flow, and commands in examples, which are indented, are continued as a shell would read them."""

from __future__ import annotations

import inspect
import re

import typer

WIDTH = 76  # of a window of 80, less the margins


def flow(app: typer.Typer) -> None:
    """Every help under this name, those of groups included."""
    for command in app.registered_commands:
        command.help = flowing(command.help or inspect.getdoc(command.callback) or "")
    for group in app.registered_groups:
        if group.typer_instance is not None:
            flow(group.typer_instance)


def flowing(text: str) -> str:
    return "\n\n".join(map(_paragraph, inspect.cleandoc(text).split("\n\n")))


def _paragraph(text: str) -> str:
    if not text.startswith(" "):
        return " ".join(text.split())
    return "\n".join(map(_example, text.splitlines()))


def _example(line: str) -> str:
    """Continued before an option, which stays with its value."""
    if len(line) <= WIDTH:
        return line
    first, *options = re.split(" (?=-)", line.strip())
    lines = [f"  {first}"]
    for option in options:
        if len(lines[-1]) + len(option) < WIDTH - 2:
            lines[-1] += f" {option}"
        else:
            lines.append(f"      {option}")
    return " \\\n".join(lines)
