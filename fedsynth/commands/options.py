"""Options that commands about a cluster share, and how such a command says what it did."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

Namespace = Annotated[
    str, typer.Option("--namespace", "-n", envvar="FEDSYNTH_NAMESPACE", help="Where it is installed.")
]
Release = Annotated[str, typer.Option(envvar="FEDSYNTH_RELEASE", help="Name of the Helm release.")]
Context = Annotated[str | None, typer.Option(help="Context of the kubeconfig; the current one if left out.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for other programs.")]


def say(facts: dict[str, Any], as_json: bool, words: str) -> None:
    typer.echo(json.dumps(facts, indent=2) if as_json else words)
