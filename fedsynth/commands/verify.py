"""`fedsynth verify`: the auditor's command."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.table import Table

from crypto.errors import CryptoError
from crypto.keys import Identity
from fedsynth.documents import read_document, read_plan
from synth.certificate.certificate import Certificate, Signature
from synth.certificate.promise import promise
from synth.certificate.verification import Evidence, Finding, check_certificate
from synth.errors import InputError, NotVerified

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
        typer.Option(help="YAML of NAME: PUBLIC KEY for every party, and for 'aggregator', compared out of band."),
    ] = None,
) -> None:
    """Check a CERTIFICATE: signatures, table, plan, and ε composed anew from the events that the parties signed.

    With --plan also that these events are exactly what the plan's asks cost: an ε over fewer says nothing.
    Without --keys a signature proves only that nobody changed the text after signing, not who signed.

    Exit codes: 0 everything that was checked holds, 2 a file cannot be read, 7 something does not hold.
    """
    document = read_certificate(certificate)
    evidence = Evidence(
        is_signed=is_signed,
        keys=_keys(keys) if keys else None,
        plan=read_plan(plan) if plan else None,
        tables={path.name: sha256_of(path) for path in table or _beside(certificate, document)},
    )
    findings = check_certificate(document, evidence)
    console = Console()
    console.print(_report(findings))
    console.print(promise(document), markup=False, highlight=False)
    if failed := [finding for finding in findings if finding.holds is False]:
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
        return Certificate.model_validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"the certificate {path} cannot be read: {error.strerror}.") from None
    except ValidationError as error:
        places = ", ".join(sorted({".".join(map(str, item["loc"])) or "whole file" for item in error.errors()}))
        raise InputError(f"{path} is not a certificate of this version (look at: {places}).") from None


def _keys(path: Path) -> dict[str, str]:
    content = read_document(path)
    try:
        return {str(name): Identity.from_text(text).public.hex() for name, text in content.items()}
    except (AttributeError, CryptoError) as error:
        raise InputError(
            f"{path} must hold NAME: PUBLIC KEY lines, as under 'peers' in party.yaml ({error})."
        ) from None


def _beside(certificate: Path, document: Certificate) -> list[Path]:
    paths = [certificate.parent / Path(name).name for name in document.table_sha256]
    return [path for path in paths if path.is_file()]


def sha256_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"the table {path} cannot be read: {error.strerror}.") from None
