"""`fedsynth verify`: the auditor's command."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from fedsynth.certificate.checking import PDF, checked, read_certificate
from fedsynth.documents import read_plan, read_plan_content
from fedsynth.extras import in_an_extra
from fedsynth.keyring import read_keys
from fedsynth.plan_content import with_parties
from synth.certificate.evidence import Finding
from synth.certificate.promise import spoken
from synth.errors import InputError, NotVerified
from synth.plan import Plan, parse_plan

MARKS = {True: "[green]holds[/]", False: "[bold red]FAILS[/]", None: "[yellow]not checked[/]"}


def verify(
    certificate: Annotated[Path, typer.Argument(help="certificate.json of a release.")],
    plan: Annotated[Path | None, typer.Option(help="The plan the parties approved.")] = None,
    table: Annotated[
        list[Path] | None,
        typer.Option(help="A synthetic table to recognise. Left out: those beside the certificate."),
    ] = None,
    keys: Annotated[
        Path | None,
        typer.Option(
            help="keys.yaml: NAME: PUBLIC KEY for every party, and for 'aggregator', compared out of band; or a list "
            "of {key, valid_from, retired_on} where keys were rotated."
        ),
    ] = None,
    unsigned: Annotated[
        bool,
        typer.Option("--unsigned", help="What is missing (keys, plan, a signature) is said and does not fail."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print findings and promise as JSON, for programs.")] = False,
    pages: Annotated[
        Path | None,
        typer.Option(help="Write certificate.html and certificate.pdf, with what was found, into this folder."),
    ] = None,
) -> None:
    """Check a CERTIFICATE: signatures, table, plan, and ε composed anew from the events that the parties signed.

    The plan is --plan, or plan.json beside the certificate: these events must be exactly what its asks cost. Keys that
    nobody compared, a missing plan or a missing signature fail, as whoever takes them off must not pass; --unsigned
    lets them pass, for simulations and for a first look. --pages is for a data-protection officer: who, what, when,
    which columns, ε in words and in a picture, and what is not promised. A certificate that fails promises nothing.

    Exit codes: 0 everything holds, 2 a file cannot be read, 7 something does not hold or is missing.
    """
    found = checked(
        certificate,
        _plan(plan, certificate.parent / "plan.json", unsigned and read_certificate(certificate).simulated),
        tables=table,
        keys=read_keys(keys) if keys else None,
        unsigned=unsigned,
    )
    words = spoken(found.certificate, found.findings)
    console = Console(stderr=as_json)
    if as_json:
        listed = [asdict(finding) for finding in found.findings]
        said = {"holds": not found.failed, "findings": listed, "promise": words}
        typer.echo(json.dumps(said, ensure_ascii=False, indent=2))
    else:
        console.print(_report(found.findings))
        console.print(words, markup=False, highlight=False)
    if pages is not None:
        written = found.write_pages(pages)
        for path in written:
            console.print(f"written: {path}", markup=False, highlight=False, soft_wrap=True)
        if PDF not in [path.name for path in written]:
            console.print(f"not written: {PDF}; {in_an_extra('reportlab')}", markup=False, highlight=False)
    if found.failed:
        raise NotVerified("; ".join(f"{finding.what}: {finding.detail}" for finding in found.failed) + ".")


def _report(findings: list[Finding]) -> Table:
    table = Table()
    for heading in ("what", "", "detail"):
        table.add_column(heading, overflow="fold")
    for finding in findings:
        table.add_row(finding.what, MARKS[finding.holds], finding.detail.replace("[", r"\["))
    return table


def _plan(given: Path | None, beside: Path, simulated: bool) -> Plan | None:
    """What the parties approved is known by its digest, so the copy beside the certificate is as good as any. Of a
    simulation, which only --unsigned lets pass, so is the plan that one table was split by: it is the copy but for the
    parties. Of a federation it never is: who took part is what an auditor asks."""
    if given is None or not simulated or not beside.is_file():
        return read_plan(given or beside) if given or beside.is_file() else None
    content, copy = read_plan_content(given), read_plan(beside)
    try:
        split = parse_plan(with_parties(content, {party.name: party.rows for party in copy.parties}))
    except InputError:
        return parse_plan(content)
    return copy if split.digest() == copy.digest() else parse_plan(content)
