"""`fedsynth status`: who is connected, where every run stands, and for whom it waits.

It is looked at often, so it loads little: no plan, no pandas.
"""

from __future__ import annotations

import json
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from aggregator.states import RunState, Standing, clock
from fedsynth.commands.options import Context, Json, Namespace, Release
from fedsynth.operated import operated

FEWEST_DAYS = 14


def status(
    namespace: Namespace = "fedsynth", release: Release = "aggregator", context: Context = None, as_json: Json = False
) -> None:
    """Show which parties are connected and how far the runs are.

    Exit codes: 0 shown, 8 the cluster.
    """
    found = operated(namespace, release, context).status()
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    else:
        show_status(found)


def show_status(found: dict[str, Any]) -> None:
    console = Console(highlight=False)
    if not found.get("superlink", True):
        since = clock(found["away_since"])
        console.print(f"The SuperLink is away since {since}; nobody is connected. Runs go on when it is back.")
    parties = Table("party", "connected")
    for node in found["nodes"]:
        parties.add_row(node["party"], "yes" if node["online"] else "no")
    for party in found.get("not_registered", []):
        parties.add_row(party, "not registered: just being installed, or its key was revoked before")
    runs = Table("plan", "where it stands", "round", "ε", "since", "digest")
    standings = [Standing.from_json(run) for run in found["runs"]]
    for each in sorted(standings, key=lambda run: run.began):
        runs.add_row(each.plan, _short(each), _round(each), _epsilon(each), clock(each.since), each.digest[:12])
    console.print(parties, runs)
    for each in standings:
        if each.state in (RunState.waiting, RunState.failed, RunState.interrupted, RunState.withheld):
            console.print(f"{each.plan}: {each.in_words()}", markup=False, soft_wrap=True)
    days = found.get("certificate_days")
    if days is not None and days < FEWEST_DAYS:
        console.print(f"The server's certificate ends in {days:.0f} days: `fedsynth provision --rotate server`.")


def _short(run: Standing) -> str:
    if run.state is RunState.waiting:
        return f"waiting for {', '.join(run.waiting_for)}"
    return str(run.state) if run.state not in (RunState.running, RunState.queued) else run.stage


def _round(run: Standing) -> str:
    return f"{run.round}/{run.rounds}" if run.rounds else ""


def _epsilon(run: Standing) -> str:
    return "" if run.epsilon is None else f"{run.epsilon:.3f}"
