"""`fedsynth run`, `status`, `logs`, `stop`, `resume`, `fetch`: the operator's day.

Exit codes beside those of every command: 8 the cluster (unreachable, forbidden, a pod that cannot start), 9 a run that
ended without a release, 10 a table that its plan's gate withheld.

With FEDSYNTH_SANDBOX in the environment they speak to a sandbox (`fedsynth sandbox up`) in place of a cluster.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from fedsynth.commands.options import Context, Json, Namespace, Release, say
from fedsynth.commands.progress import ConsoleWatch
from fedsynth.documents import read_plan
from fedsynth.operated import DONE, Operated, operated
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


def status(
    namespace: Namespace = "fedsynth", release: Release = "aggregator", context: Context = None, as_json: Json = False
) -> None:
    """Show which parties are connected and how far the runs are.

    Exit codes: 0 shown, 8 the cluster.
    """
    found = operated(namespace, release, context).status()
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    console, nodes, runs = (
        Console(),
        Table("party", "connected"),
        Table("plan", "state", "stage", "round", "ε", "digest"),
    )
    for node in found["nodes"]:
        nodes.add_row(node["party"], "yes" if node["online"] else "no")
    for each in found["runs"]:
        spent = "" if each["epsilon"] is None else f"{each['epsilon']:.3f}"
        rounds = f"{each['round']}/{each['rounds']}" if each["rounds"] else ""
        runs.add_row(each["plan"], each["state"], each["stage"], rounds, spent, each["digest"][:12])
    console.print(nodes, runs)
    for each in found["runs"]:
        if each["error"]:
            console.print(f"{each['plan']}: {each['error']['message']}", markup=False, soft_wrap=True)


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
    if before is not None and before["state"] in DONE:
        raise InputError(
            f"plan '{plan.name}' was carried out already; `fedsynth fetch {plan.name} --out DIR` brings its release. "
            "To spend again on purpose, give the plan another name and have it approved."
        )
    word = aggregator.submit(plan)
    if not wait:
        say(word, as_json, f"{plan.name} was submitted; `fedsynth status` shows how far it is.")
        return
    last: dict[str, Any] = {}
    with ConsoleWatch(Console(stderr=as_json, quiet=as_json), "ε") as watch:
        for progress in aggregator.watch(word["digest"], word["flower_run"]):
            if progress["stage"] != last.get("stage"):
                watch.stage(progress["stage"])
            if progress["round"] != last.get("round") and progress["rounds"]:
                watch.round(progress["round"], progress["rounds"], progress["losses"], progress["epsilon"])
            last = progress
    if last["state"] != "finished":
        reason = last["error"]["message"] if last["error"] else f"it was {last['state']}"
        raise RunFailed(f"{plan.name} ended without a release: {reason}")
    if last.get("withheld"):
        raise Withheld(f"the table of {plan.name} was made and is withheld by the plan's gate: {last['withheld']}.")
    say(last, as_json, f"{plan.name} is released; `fedsynth fetch {plan.name} --out DIR` brings it here.")
