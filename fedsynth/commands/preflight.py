"""`fedsynth preflight`: will it work from here? Also what `helm test` runs in both charts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from fedsynth.preflight import Endpoint, Finding, check, check_endpoint, is_open

app = typer.Typer(no_args_is_help=True, help="Check networks and clusters before anybody depends on them.")
FAILED = 4


@app.command()
def endpoint(
    address: Annotated[str, typer.Argument(help="HOST:PORT of the aggregator, as in the kit.")],
    ca: Annotated[Path, typer.Option(help="The authority's certificate, from the kit.")],
    connect: Annotated[str | None, typer.Option(help="HOST:PORT to dial instead, inside a cluster.")] = None,
    control: Annotated[str | None, typer.Option(help="Also check the operator's door, HOST:PORT.")] = None,
    control_files: Annotated[Path | None, typer.Option(help="Folder with its ca.crt, tls.crt and tls.key.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for other programs.")] = False,
) -> None:
    """Check the way to an aggregator: name, TLS, certificate, clocks, request size, and that only Fleet is open.

    Exit codes: 0 everything holds, 4 something does not.
    """
    findings = list(check_endpoint(Endpoint(address, ca, connect)))
    if control is not None and control_files is not None:
        findings.append(check("control", lambda: _control(control, control_files)))
    _tell(findings, as_json)


@app.command()
def cluster(
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Where it will be installed.")] = "fedsynth",
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig.")] = None,
    gpu: Annotated[str | None, typer.Option(help="A GPU resource that must be offered, e.g. nvidia.com/gpu.")] = None,
    probe_image: Annotated[
        str | None,
        typer.Option(help="Try whether network policies are enforced, with two short-lived pods of this image."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for other programs.")] = False,
) -> None:
    """Check a cluster: its version, your rights, storage, network policies, and a GPU if asked for.

    Exit codes: 0 everything holds, 4 something does not, 8 the cluster cannot be reached.
    """
    from fedsynth.cluster.preflight import check_cluster

    _tell(check_cluster(namespace, context, gpu, probe_image), as_json)


@app.command()
def policies(
    forbidden: Annotated[str, typer.Argument(help="HOST:PORT that a network policy keeps this pod from.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for other programs.")] = False,
) -> None:
    """Dial what a network policy forbids, and say whether anything enforces it. `helm test` runs this.

    Exit codes: 0 whatever was found: the charts do not rely on it.
    """
    loose = is_open(forbidden)
    words = "not enforced: nothing keeps pods from calling out" if loose else "enforced"
    _tell([Finding("network policies", True, words, warning=loose)], as_json)


def _control(address: str, files: Path) -> str:
    from aggregator.server.control import Control

    nodes = Control(address, files).nodes()
    return f"{len(nodes)} parties registered, {sum(node['online'] for node in nodes)} connected"


def _tell(findings: Iterable[Finding], as_json: bool) -> None:
    found = list(findings)
    if as_json:
        typer.echo(json.dumps([vars(each) for each in found], indent=2))
    else:
        for each in found:
            mark = "FAIL" if not each.holds else "WARN" if each.warning else "ok  "
            typer.echo(f"{mark} {each.check}: {each.words}")
    if not all(each.holds for each in found):
        raise typer.Exit(FAILED)
