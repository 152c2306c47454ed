"""`fedsynth provision`: certificates, keys and kits for everybody in a federation."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fedsynth.provision.federation import read_federation
from fedsynth.provision.provisioning import Outcome, Provisioning


def provision(
    federation: Annotated[Path, typer.Argument(help="The federation: name, endpoint and parties, YAML or JSON.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder of the kits; it is the memory, keep it safe.")
    ] = Path("federation"),
    join: Annotated[
        list[Path] | None, typer.Option(help="A party's join file, from its `fedsynth node keygen`. May be repeated.")
    ] = None,
    make_keys: Annotated[
        list[str] | None,
        typer.Option(help="Make this party's keys yourself; its certificates will say so. May be repeated."),
    ] = None,
    rotate: Annotated[
        list[str] | None,
        typer.Option(help="Make anew: 'ca', 'server', 'control', 'aggregator', 'federation' or a party's keys."),
    ] = None,
    revoke: Annotated[
        list[str] | None, typer.Option(help="Shut a party out, now and in later runs. May be repeated.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")] = False,
) -> None:
    """Make what is missing and keep what is there: authority, server certificate, and a kit for every party.

    Parties make their own keys (`fedsynth node keygen`) and send their join files. Hand each folder under parties/ to
    its party: it is signed, and whatever is changed in it is refused. Nothing secret is printed. The fingerprints, also
    in fingerprints.txt, are for the telephone.

    Exit codes: 0 everything is there, 2 the federation cannot be read, 5 a file cannot be written.
    """
    document = read_federation(federation, join or [])
    outcome = Provisioning(document, out, rotate or [], revoke or [], make_keys or []).carry_out()
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(outcome), indent=2))
        return
    _tell(outcome, out)


def _tell(outcome: Outcome, out: Path) -> None:
    console = Console(highlight=False)
    for verb, things in (("made", outcome.made), ("kept", outcome.kept), ("revoked", outcome.revoked)):
        if things:
            console.print(f"{verb}: {', '.join(things)}")
    if outcome.operator_made:
        names = ", ".join(outcome.operator_made)
        console.print(f"You made the keys of {names}, and could act in their name. Their certificates say so.")
    console.print(f"\n{outcome.page}", markup=False)
    if len(outcome.authorities) > 1:
        console.print(
            "\nA new authority is being brought in. When every party has installed its new kit, finish with "
            "--rotate server.",
            soft_wrap=True,
        )
    console.print(f"Next: fedsynth install aggregator --kit {out}/aggregator -n fedsynth", soft_wrap=True)
