"""`fedsynth audit-log` and `fedsynth node audit-log`: who did what, at the aggregator and at a party."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from fedsynth.commands.home import HomeOption
from fedsynth.commands.options import Context, Namespace, Release
from fedsynth.operated import operated
from synth.audit_log import FILE, AuditLog, as_lines
from synth.errors import InputError

After = Annotated[int, typer.Option(min=0, help="Only lines with a higher number, for what reads again and again.")]
Verify = Annotated[bool, typer.Option("--verify", help="Only check the chain of lines.")]


def audit_log(
    after: After = 0,
    verify: Verify = False,
    namespace: Namespace = "fedsynth",
    release: Release = "aggregator",
    context: Context = None,
) -> None:
    """Print the aggregator's audit log: who ran, resumed, stopped, fetched, and whom it admits. JSON lines.

    `who` is the caller's word: what the cluster or the kubeconfig calls them.

    Exit codes: 0 printed, 7 the chain is broken, 8 the cluster.
    """
    told = operated(namespace, release, context).ask("audit-log")
    _show([json.loads(line) for line in told.splitlines() if line], after, verify)


def node_audit_log(
    home: Annotated[Path, HomeOption],
    after: After = 0,
    verify: Verify = False,
) -> None:
    """Print this party's audit log: who approved and withdrew, what was admitted and refused. JSON lines.

    It stays at the party; nothing in it depends on a row. The worker may be running.

    Exit codes: 0 printed, 2 there is none, 7 the chain is broken.
    """
    if not (home / FILE).exists():
        raise InputError(f"there is no {FILE} in {home}; nothing was approved or asked here yet, or --home is wrong.")
    _show(AuditLog(home / FILE, "").read(), after, verify)


def _show(lines: list[dict[str, object]], after: int, verify: bool) -> None:
    if verify:
        typer.echo(f"{len(lines)} lines hold; head {lines[-1]['hash'] if lines else 'none'}")
        return
    if later := [line for line in lines if int(str(line["number"])) > after]:
        typer.echo(as_lines(later))
