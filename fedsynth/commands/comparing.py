"""The ceremony before a party's release is made: its fingerprints are shown whole, and people say what they heard."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import typer

from fedsynth.provision.errors import KitRefused
from fedsynth.provision.fingerprints import (
    TYPED_CHARACTERS,
    Marks,
    bare,
    in_groups,
    of_values,
    read_page,
    require_heard,
)

ABOUT = "The release will believe these, computed from what is about to be installed:"


def compare(values: dict[str, Any], installed: dict[str, Any], heard: Path | None) -> None:
    """Refuse unless everything that these values make a party believe was compared, now or before."""
    marks, pinned = of_values(values), _pinned(installed)
    typer.echo(ABOUT, err=True)
    for name, mark in marks.items():
        typer.echo(f"{name}{_news(name, mark, pinned)}:\n{textwrap.indent(in_groups(mark), '    ')}", err=True)
    if heard is not None:
        require_heard(marks, read_page(heard))
        return
    for name, mark in marks.items():
        if pinned.get(name) != mark:
            _ask(name, mark)


def _pinned(installed: dict[str, Any]) -> Marks:
    try:
        return of_values(installed)
    except KitRefused:  # no release yet, or one of a version that did not pin all of it
        return {}


def _news(name: str, mark: str, pinned: Marks) -> str:
    if not pinned:
        return ""
    return " (as installed)" if pinned.get(name) == mark else " (CHANGED)" if name in pinned else " (new)"


def _ask(name: str, mark: str) -> None:
    words = f"{name}: its last {TYPED_CHARACTERS} characters, as you heard them"
    if bare(typer.prompt(words, default="", show_default=False, err=True)) != mark[-TYPED_CHARACTERS:]:
        raise KitRefused(
            f"that is not the end of the fingerprint of {name}. If you typed what you were told, somebody may stand "
            "between you: call the operator, and do not use this kit. Nothing was installed."
        )
