"""`fedsynth verify`: the auditor's command."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from crypto.errors import CryptoError
from crypto.keys import Identity
from fedsynth.documents import read_plan, read_plan_content
from fedsynth.keyring import read_keys
from fedsynth.plan_content import with_parties
from synth.certificate.certificate import LARGEST_CERTIFICATE_BYTES, Certificate, Signature, parse_certificate
from synth.certificate.promise import promise
from synth.certificate.verification import Evidence, Finding, check_certificate
from synth.errors import InputError, NotVerified
from synth.plan import Plan, parse_plan

NOTHING = "Nothing is promised: the certificate does not hold."
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
) -> None:
    """Check a CERTIFICATE: signatures, table, plan, and ε composed anew from the events that the parties signed.

    The plan is --plan, or plan.json beside the certificate: these events must be exactly what its asks cost. Keys that
    nobody compared, a missing plan or a missing signature fail, as whoever takes them off must not pass; --unsigned
    lets them pass, for simulations and for a first look.

    Exit codes: 0 everything holds, 2 a file cannot be read, 7 something does not hold or is missing.
    """
    document = read_certificate(certificate)
    evidence = Evidence(
        is_signed=is_signed,
        keys=read_keys(keys) if keys else None,
        plan=_plan(plan, certificate.parent / "plan.json", document),
        tables={path.name: sha256_of(path) for path in table or _beside(certificate, document)},
        unsigned=unsigned,
        now=dt.datetime.now(dt.UTC),
    )
    findings = check_certificate(document, evidence)
    failed = [finding for finding in findings if finding.holds is False]
    words = promise(document) if not failed else NOTHING
    if as_json:
        found = {"holds": not failed, "findings": [asdict(finding) for finding in findings], "promise": words}
        typer.echo(json.dumps(found, ensure_ascii=False, indent=2))
    else:
        console = Console()
        console.print(_report(findings))
        console.print(words, markup=False, highlight=False)
    if failed:
        raise NotVerified("; ".join(f"{finding.what}: {finding.detail}" for finding in failed) + ".")


def is_signed(signature: Signature, message: bytes) -> bool:
    try:
        Identity(bytes.fromhex(signature.public_key)).verify(bytes.fromhex(signature.signature), message)
    except (CryptoError, ValueError):
        return False
    return True


def _report(findings: list[Finding]) -> Table:
    table = Table()
    for heading in ("what", "", "detail"):
        table.add_column(heading, overflow="fold")
    for finding in findings:
        table.add_row(finding.what, MARKS[finding.holds], finding.detail.replace("[", r"\["))
    return table


def read_certificate(path: Path) -> Certificate:
    try:
        if path.stat().st_size > LARGEST_CERTIFICATE_BYTES:
            raise InputError(f"{path} is larger than any certificate.")
        return parse_certificate(path.read_bytes(), str(path))
    except OSError as error:
        raise InputError(f"the certificate {path} cannot be read: {error.strerror}.") from None


def _plan(given: Path | None, beside: Path, document: Certificate) -> Plan | None:
    """What the parties approved is known by its digest, so the copy beside the certificate is as good as any. Of a
    simulation that split one table among its parties, the plan it was made from is as good, too: it is the copy but
    for the parties."""
    if given is None or not (document.simulated and beside.is_file()):
        return read_plan(given or beside) if given or beside.is_file() else None
    plan, copy = read_plan_content(given), read_plan(beside)
    split = parse_plan(with_parties(plan, {party.name: party.rows for party in copy.parties}))
    return copy if split.digest() == copy.digest() else parse_plan(plan)


def _beside(certificate: Path, document: Certificate) -> list[Path]:
    paths = [certificate.parent / Path(name).name for name in document.table_sha256]
    return [path for path in paths if path.is_file()]


def sha256_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"the table {path} cannot be read: {error.strerror}.") from None
