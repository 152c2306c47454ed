"""`fedsynth run`, `status`, `logs`, `stop`, `resume`, `forget`, `fetch`: the operator's day.

Exit codes beside those of every command: 8 the cluster (unreachable, forbidden, a pod that cannot start), 9 a run that
ended without a release, 10 a table that its plan's gate withheld.

With FEDSYNTH_SANDBOX in the environment they speak to a sandbox (`fedsynth sandbox up`) in place of a cluster.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from aggregator.states import DONE, RunState, Standing, clock
from fedsynth.commands.options import Context, Json, Namespace, Release, say
from fedsynth.commands.progress import ConsoleWatch
from fedsynth.documents import read_plan
from fedsynth.operated import Operated, operated
from synth.errors import FedsynthError, InputError, Withheld
from synth.plan import Plan, parse_plan


class RunFailed(FedsynthError):
    code = "run-failed"
    exit_code = 9


def run(
    plan: Annotated[Path, typer.Argument(help="The plan, YAML or JSON. Every party must have approved it.")],
    wait: Annotated[bool, typer.Option("--wait", help="Stay and show progress until it ends.")] = False,
    namespace: Namespace = "fedsynth",
    release: Release = "aggregator",
    context: Context = None,
    as_json: Json = False,
) -> None:
    """Start a synthesis on the cluster's aggregator.

    Exit codes: 0 started (with --wait: released), 2 the plan, 8 the cluster, 9 it ended without a release,
    10 its table is withheld by the plan's gate.
    """
    start(read_plan(plan), wait, operated(namespace, release, context), as_json)


def resume(
    name: Annotated[str, typer.Argument(help="The run: its plan's name or the beginning of its digest.")],
    wait: Annotated[bool, typer.Option("--wait", help="Stay and show progress until it ends.")] = False,
    namespace: Namespace = "fedsynth",
    release: Release = "aggregator",
    context: Context = None,
    as_json: Json = False,
) -> None:
    """Continue a run that failed, was stopped or lost its pod, from its checkpoint. Nothing is spent twice.

    Exit codes: 0 started (with --wait: released), 8 the cluster or no such run, 9 it ended without a release,
    10 its table is withheld by the plan's gate.
    """
    aggregator = operated(namespace, release, context)
    start(parse_plan(json.loads(aggregator.ask("plan", name))), wait, aggregator, as_json)


def logs(
    container: Annotated[str, typer.Option(help="run, superlink, edge (who knocked) or inside.")] = "run",
    lines: Annotated[int, typer.Option(min=1, help="How many of the last lines.")] = 200,
    namespace: Namespace = "fedsynth",
    release: Release = "aggregator",
    context: Context = None,
) -> None:
    """Print the aggregator's log. What a party logs stays with the party.

    Exit codes: 0 printed, 8 the cluster.
    """
    typer.echo(operated(namespace, release, context).log(container, lines))


def stop(
    name: Annotated[str, typer.Argument(help="The run: its plan's name or the beginning of its digest.")],
    namespace: Namespace = "fedsynth",
    release: Release = "aggregator",
    context: Context = None,
    as_json: Json = False,
) -> None:
    """Stop a run. What parties spent is spent; it can be resumed.

    Exit codes: 0 stopped, 8 the cluster or no such run.
    """
    outcome = json.loads(operated(namespace, release, context).ask("stop", name))
    say(outcome, as_json, f"{outcome['plan']} was stopped; `fedsynth resume {outcome['plan']}` continues it.")


def forget(
    name: Annotated[str, typer.Argument(help="The run: its plan's name or the beginning of its digest.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    namespace: Namespace = "fedsynth",
    release: Release = "aggregator",
    context: Context = None,
    as_json: Json = False,
) -> None:
    """Remove a run from the aggregator: its checkpoint, report and release. Fetch what you need first.

    What parties were charged stays in their ledgers, and a released plan that was forgotten can be run again only under
    new approvals. Status and metrics do not show it any more; the audit log does.

    Exit codes: 0 forgotten, 1 declined, 8 the cluster, no such run, or one that is going on.
    """
    if not yes:
        typer.confirm(f"Remove checkpoint, report and release of '{name}' from the aggregator?", abort=True)
    outcome = json.loads(operated(namespace, release, context).ask("forget", name))
    say(outcome, as_json, f"{outcome['forgotten']} is forgotten here; the audit log remembers it.")


def fetch(
    name: Annotated[str, typer.Argument(help="The run: its plan's name or the beginning of its digest.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for table, model and certificate.")],
    despite_gate: Annotated[
        bool, typer.Option("--despite-gate", help="Bring a table that its plan's gate withheld, too.")
    ] = False,
    namespace: Namespace = "fedsynth",
    release: Release = "aggregator",
    context: Context = None,
    as_json: Json = False,
) -> None:
    """Bring a finished run's table, model and certificate here; of a withheld one the certificate and the reasons.

    The certificate is also written as a page (HTML and PDF); `fedsynth verify --pages` checks keys, too.

    Exit codes: 0 fetched, 8 the cluster or no such run, 10 withheld by the plan's gate.
    """
    from aggregator.publish import WITHHELD
    from fedsynth.certificate.checking import write_beside

    fetched = operated(namespace, release, context).fetch(name, out, despite_gate)
    fetched += write_beside(out / "certificate.json")
    say({"files": [str(path) for path in fetched]}, as_json, "\n".join(map(str, fetched)))
    if not despite_gate and (marks := [path for path in fetched if path.name == WITHHELD]):
        raise Withheld(
            f"{marks[0].read_text().strip()} Table and model stayed where they are; `fedsynth fetch {name} --out {out} "
            "--despite-gate` brings them."
        )


def start(plan: Plan, wait: bool, aggregator: Operated, as_json: bool) -> None:
    before = aggregator.progress(plan.digest())
    if before is not None and Standing.from_json(before).state in DONE:
        raise InputError(
            f"plan '{plan.name}' was carried out already; `fedsynth fetch {plan.name} --out DIR` brings its release. "
            "To spend again on purpose, give the plan another name and have it approved."
        )
    word = aggregator.submit(plan)
    if not wait:
        say(word, as_json, f"{plan.name} was submitted; `fedsynth status` shows how far it is.")
        return
    last = _watched(aggregator.watch(word["digest"], word["flower_run"]), Console(stderr=as_json, quiet=as_json))
    if last.state not in DONE:
        raise RunFailed(f"{plan.name} ended without a release: {last.in_words()}")
    if last.withheld:
        raise Withheld(f"the table of {plan.name} was made and is withheld by the plan's gate: {last.withheld}.")
    say(last.to_json(), as_json, f"{plan.name} is released; `fedsynth fetch {plan.name} --out DIR` brings it here.")


def _watched(standings: Iterator[Standing], console: Console) -> Standing:
    """Show each as it comes; the last one."""
    last: Standing | None = None
    with ConsoleWatch(console, "ε") as watch:
        for standing in standings:
            waits = standing.state in (RunState.waiting, RunState.queued)
            said, before = _line(standing), _line(last) if last else None
            if said != before:
                watch.stage(said)
            if standing.rounds and not waits and (last is None or standing.round != last.round):
                watch.round(standing.round, standing.rounds, standing.losses, standing.epsilon)
            last = standing
    if last is None:
        raise RunFailed("the run was never seen; see `fedsynth status`")
    return last


def _line(standing: Standing) -> str:
    """What is being done, or for whom it waits; without figures that change by themselves."""
    if standing.state is RunState.waiting:
        why = f": {standing.waiting_why}" if standing.waiting_why else ""
        return f"waiting for {', '.join(standing.waiting_for)} since {clock(standing.since)}{why}"
    if standing.unanswered:
        return f"{standing.stage} (no answer yet from {', '.join(standing.unanswered)})"
    return standing.stage
