"""`fedsynth sandbox`: a real federation on one machine, to walk through the guides and to break on purpose."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from aggregator.states import Standing
from fedsynth.commands.options import Json
from fedsynth.documents import read_plan
from fedsynth.operated import SANDBOX
from fedsynth.sandbox.compose import write_compose
from fedsynth.sandbox.layout import AGGREGATOR, Layout
from fedsynth.sandbox.making import make
from fedsynth.sandbox.running import Sandbox
from synth import VERSION
from synth.errors import InputError

app = typer.Typer(
    no_args_is_help=True,
    help="A federation on this machine: aggregator and parties as real processes, without Kubernetes.",
)
Folder = Annotated[
    Path, typer.Option("--folder", "-f", envvar=SANDBOX, help="The sandbox's folder; it is the whole federation.")
]
DEFAULT = Path("sandbox")


@app.command()
def up(
    plan: Annotated[
        Path | None, typer.Argument(help="A plan of your own, with --data. Left out: three made-up hospitals.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="A table, dealt out at random to the plan's parties.")] = None,
    folder: Folder = DEFAULT,
    port: Annotated[
        int | None, typer.Option(min=1024, max=65535, help="Where parties dial. Left out: one that is free.")
    ] = None,
    consoles: Annotated[bool, typer.Option(help="Pages in the browser for the operator and every party.")] = True,
    browse: Annotated[
        bool, typer.Option(help="Open the operator's page. Default: where somebody sits at a terminal.")
    ] = sys.stdout.isatty(),
) -> None:
    """Make a federation in a folder, or wake the one that is there, and wait until every party is connected.

    Flower's own servers on loopback, with TLS and node authentication; a worker, ledger, policy and keys for every
    party; nothing is approved yet. Repeat it to start again what was killed. There is no edge in front of the Control
    API: whoever has an account on this machine can reach it. It is for trying, with rows that are public anyway.

    Exit codes: 0 everybody is connected, 2 the folder, the plan or the table, 8 a process ended or did not answer.
    """
    sandbox, console = Sandbox(folder), Console(highlight=False)
    if not sandbox.layout.register.exists():
        make(sandbox.layout, plan, data, port)
    elif plan is not None or data is not None:
        raise InputError(f"{folder} is a sandbox already; `fedsynth sandbox down --delete` first, or another --folder.")
    sandbox.up(tell=lambda text: console.print(f"… {text}"), consoles=consoles)
    _tell_next(console, sandbox)
    if browse and (addresses := sandbox.addresses()):
        typer.launch(addresses[AGGREGATOR])


@app.command()
def status(folder: Folder = DEFAULT, as_json: Json = False) -> None:
    """Show which processes run, who is connected, and how far the runs are.

    Exit codes: 0 shown, 2 there is no sandbox, 8 the SuperLink does not answer.
    """
    from fedsynth.sandbox.operator import SandboxAggregator

    sandbox = Sandbox(folder)
    sandbox.layout.require()
    alive = sandbox.processes.alive()
    runs_and_nodes = (
        SandboxAggregator(folder).status() if "aggregator/superlink" in alive else {"nodes": [], "runs": []}
    )
    online = {node["party"] for node in runs_and_nodes["nodes"] if node["online"]}
    if as_json:
        typer.echo(json.dumps(runs_and_nodes | {"processes": alive}, indent=2))
        return
    console, table = Console(highlight=False), Table("who", "connected", "processes")
    for name in (AGGREGATOR, *sandbox.layout.parties):
        running = [each.partition("/")[2] for each in alive if each.startswith(f"{name}/")]
        connected = "" if name == AGGREGATOR else "yes" if name in online else "no"
        table.add_row(name, connected, ", ".join(running) or "none")
    console.print(table)
    for standing in map(Standing.from_json, runs_and_nodes["runs"]):
        console.print(f"{standing.plan}: {standing.in_words()}", markup=False, soft_wrap=True)


@app.command()
def run(
    plan: Annotated[
        Path | None, typer.Argument(help="The plan. Left out: the one that the sandbox was made with.")
    ] = None,
    approve: Annotated[
        bool, typer.Option("--approve", help="First approve it at every party, as if each had read its screen.")
    ] = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Also fetch the release into this folder.")] = None,
    folder: Folder = DEFAULT,
) -> None:
    """Run a plan and show its progress until it ends, as `fedsynth run --wait` does on a cluster.

    Every party must have approved it: in its console, with `fedsynth node approve PLAN --home DIR`, or all of them by
    --approve, which spends from the same ledgers under the same policies.

    Exit codes: 0 released, 2 the plan, 3 a party's budget, 4 a party's policy, 8 the sandbox, 9 it ended without a
    release, 10 its table is withheld by the plan's gate.
    """
    from fed_node.consent import administration
    from fedsynth.commands.run import start
    from fedsynth.sandbox.operator import SandboxAggregator

    sandbox = Sandbox(folder)
    document, aggregator = read_plan(plan or sandbox.layout.require().plan), SandboxAggregator(folder)
    for party in sandbox.layout.parties if approve else ():
        administration.approve(sandbox.layout.home(party), document)
    start(document, True, aggregator, False)
    if out is not None:
        typer.echo("\n".join(map(str, aggregator.fetch(document.digest(), out))))


@app.command()
def kill(
    name: Annotated[str, typer.Argument(help="A party, 'aggregator', or one process: north/worker.")],
    folder: Folder = DEFAULT,
) -> None:
    """Kill processes without a warning (SIGKILL), to see what a federation does then. `up` starts them again.

    Exit codes: 0 killed, or nothing ran; 2 there is nobody of that name.
    """
    killed = Sandbox(folder).kill(name)
    typer.echo(f"Killed: {', '.join(killed) or 'nothing, it did not run'}. `fedsynth sandbox up` starts it again.")


@app.command()
def down(
    folder: Folder = DEFAULT,
    delete: Annotated[bool, typer.Option("--delete", help="Then delete the folder: keys, ledgers, releases.")] = False,
) -> None:
    """End every process of the sandbox. Ledgers, approvals and releases stay; `up` goes on from there.

    Exit codes: 0 ended, 2 there is no sandbox.
    """
    sandbox = Sandbox(folder)
    sandbox.layout.require()
    ended = sandbox.down()
    typer.echo(f"Ended {len(ended)} processes.")
    if delete:
        shutil.rmtree(sandbox.layout.folder)
        typer.echo(f"Deleted {folder}.")


@app.command()
def compose(
    plan: Annotated[Path | None, typer.Argument(help="As for `up`.")] = None,
    data: Annotated[Path | None, typer.Option(help="As for `up`.")] = None,
    folder: Folder = DEFAULT,
    tag: Annotated[
        str, typer.Option(help="Of the images fedsynth/aggregator, fed-node and edge (`make images`).")
    ] = VERSION,
) -> None:
    """Write compose.yaml: the same federation as containers of the real images, with the edge in front.

    Each container has its own folders, its own network and no rights; the Control API is reached from the operator's
    container alone. Processes of `up` and containers share the folder, so use one of them at a time.

    Exit codes: 0 written, 2 the folder, the plan or the table.
    """
    layout = Layout(folder.absolute())
    if not layout.register.exists():
        make(layout, plan, data, None)
    elif alive := Sandbox(folder).processes.alive():
        raise InputError(f"{alive[0]} runs as a process; `fedsynth sandbox down` first, then containers can take over.")
    path = write_compose(layout, tag)
    first, docker = layout.parties[0], f"  docker compose -f {path}"
    for line in (
        f"Written: {path}. Next:",
        f"{docker} up -d",
        f"{docker} exec {first}-worker fedsynth node approve {layout.plan} --home {layout.home(first)}",
        f"{docker} exec operator fedsynth run {layout.plan} --wait",
    ):
        typer.echo(line)


def _tell_next(console: Console, sandbox: Sandbox) -> None:
    layout = sandbox.layout
    place, first = shlex.quote(str(layout.folder)), layout.parties[0]
    console.print(f"\nConnected: {', '.join(layout.parties)}. The logs are in {layout.logs}.", soft_wrap=True)
    for line in (
        "Next, as each party's administrator (or all at once: fedsynth sandbox run --approve):",
        f"  fedsynth node approve {place}/plan.yaml --home {place}/parties/{first}",
        "and as the operator, with the commands of the guide:",
        f"  export {SANDBOX}={place}",
        f"  fedsynth run {place}/plan.yaml --wait",
    ):
        console.print(line, markup=False, soft_wrap=True)
    if addresses := sandbox.addresses():
        console.print("\nPages to watch by (each with a token that lasts as long as its process):")
    for name, url in addresses.items():
        console.print(f"  {name:12} {url}", markup=False, soft_wrap=True)
