"""`fedsynth console`: pages to watch by, at the aggregator and at a party, and how to reach them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from fedsynth.commands.home import Home
from fedsynth.commands.options import Context, Namespace
from fedsynth.operated import SANDBOX
from synth.audit_log import WHO, caller
from synth.errors import InputError

app = typer.Typer(
    no_args_is_help=True,
    help="A page in the browser: runs and releases at the aggregator; budget, ledger and approvals at a party.",
)
AGGREGATOR_PORT, PARTY_PORT = 8600, 8601
TOKEN = "console.token"
IN_POD = "/run/console/token"
TokenFile = Annotated[Path | None, typer.Option(help=f"Where its token goes. Default: {TOKEN} beside what it reads.")]


@app.command()
def aggregator(
    state: Annotated[Path, typer.Option(help="The aggregator's volume.", envvar="FEDSYNTH_STATE")],
    metrics: Annotated[
        Path | None, typer.Option(help="What the runner writes for monitoring: who is connected.")
    ] = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="On loopback, where it listens.")] = AGGREGATOR_PORT,
    token_file: TokenFile = None,
) -> None:
    """Serve the operator's page on loopback until told to end. It only reads.

    Exit codes: 0 told to end, 2 there is no such volume.
    """
    from fedsynth.console.aggregator import aggregator_console
    from fedsynth.console.guarding import new_token
    from fedsynth.console.site import serve

    if not state.is_dir():
        raise InputError(f"there is no folder {state}; give the aggregator's volume.")
    serve(aggregator_console(state, metrics, new_token(token_file or state / TOKEN)), port)


@app.command()
def party(
    home: Home,
    port: Annotated[int, typer.Option(min=1, max=65535, help="On loopback, where it listens.")] = PARTY_PORT,
    token_file: TokenFile = None,
) -> None:
    """Serve a party administrator's page on loopback until told to end.

    It reads the home. The one thing it does is to carry an approval to the worker, after the screen of `fedsynth node
    approve` and by the same typed characters; the audit log says that it came through the console.

    Exit codes: 0 told to end, 2 there is no such home.
    """
    from fedsynth.console.guarding import new_token
    from fedsynth.console.party import party_console
    from fedsynth.console.site import serve

    os.environ[WHO] = f"{caller()} through the console"
    serve(party_console(home, new_token(token_file or home / TOKEN)), port)


@app.command()
def address(
    namespace: Namespace = "fedsynth",
    release: Annotated[str, typer.Option(help="Name of the Helm release: aggregator, or a party's.")] = "aggregator",
    context: Context = None,
) -> None:
    """Print how to open the console of a release, or of every member of a sandbox (FEDSYNTH_SANDBOX).

    The token is read in the pod, so this needs the right to execute there, as `fedsynth run` does; the page is reached
    by a port-forward. It is no secret for longer than the console's process lives.

    Exit codes: 0 printed, 2 there is no sandbox, 8 the cluster, or no console runs there.
    """
    if folder := os.environ.get(SANDBOX):
        from fedsynth.sandbox.running import Sandbox

        for name, url in Sandbox(Path(folder)).addresses().items():
            typer.echo(f"{name}: {url}")
        return
    from fedsynth.cluster.api import Cluster
    from fedsynth.cluster.errors import NotInstalled

    cluster = Cluster(namespace, context)
    pods = cluster.pods(f"app.kubernetes.io/instance={release},app.kubernetes.io/component in (aggregator,node)")
    ports = {
        container.name: int(container.command[container.command.index("--port") + 1])
        for pod in pods[:1]
        for container in pod.spec.containers
        if container.name == "console"
    }
    if not ports:
        raise NotInstalled(f"no console runs in release '{release}'; set console.enabled and install again")
    pod, port = pods[0].metadata.name, ports["console"]
    token = cluster.run_in(pod, "console", ["cat", IN_POD]).strip()
    typer.echo(f"kubectl port-forward -n {namespace} pod/{pod} {port}:{port}")
    typer.echo(f"http://localhost:{port}/?token={token}")
