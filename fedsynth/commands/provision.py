"""`fedsynth provision`: certificates, keys and kits for everybody in a federation."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from fedsynth.provision.federation import read_federation
from fedsynth.provision.provisioning import Outcome, Provisioning


def provision(
    federation: Annotated[Path, typer.Argument(help="The federation: name, endpoint and parties, YAML or JSON.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder of the kits; it is the memory, keep it safe.")
    ] = Path("federation"),
    rotate: Annotated[
        list[str] | None,
        typer.Option(help="Make anew: 'ca', 'server', 'control', 'aggregator' or a party's name. May be repeated."),
    ] = None,
    revoke: Annotated[
        list[str] | None, typer.Option(help="Shut a party out, now and in later runs. May be repeated.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")] = False,
) -> None:
    """Make what is missing and keep what is there: authority, server certificate, and a kit for every party.

    Nothing secret is printed. Hand each folder under parties/ to its party over a channel you trust, or let parties
    make their own keys (`fedsynth node keygen`) and write only the public halves into the federation.

    Exit codes: 0 everything is there, 2 the federation cannot be read, 5 a file cannot be written.
    """
    outcome = Provisioning(read_federation(federation), out, rotate or [], revoke or []).carry_out()
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(outcome), indent=2))
        return
    _tell(outcome, out)


def _tell(outcome: Outcome, out: Path) -> None:
    console = Console(highlight=False)
    for verb, things in (("made", outcome.made), ("kept", outcome.kept), ("revoked", outcome.revoked)):
        if things:
            console.print(f"{verb}: {', '.join(things)}")
    table = Table("party", "identity, to compare by telephone", "node key")
    for party, found in outcome.fingerprints.items():
        table.add_row(party, found["identity"], found["node key"])
    console.print(table)
    console.print(f"identity of the aggregator: {outcome.aggregator}", soft_wrap=True)
    for each in outcome.authorities:
        console.print(f"authority of the endpoint: {each}", soft_wrap=True)
    if len(outcome.authorities) > 1:
        console.print(
            "\nA new authority is being brought in. When every party has installed its new kit, finish with "
            "--rotate server.",
            soft_wrap=True,
        )
    console.print(
        f"\nNext: kubectl apply -n fedsynth -f {out}/aggregator/secrets.yaml && "
        f"helm upgrade --install aggregator charts/aggregator -n fedsynth -f {out}/aggregator/values.yaml",
        soft_wrap=True,
    )
