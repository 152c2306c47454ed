"""`fedsynth node ledger --against` and `--restored`: a ledger held against certificates, and made up for."""

from __future__ import annotations

from pathlib import Path

import typer

from fed_node.ledger.view import LedgerView
from fed_node.settings import PartySettings
from fedsynth.documents import read_plan
from synth.errors import NotVerified


def show_against(view: LedgerView, home: Path, path: Path) -> None:
    from fed_node.restoring import against, own_statements
    from fedsynth.certificate.checking import read_certificate

    party = PartySettings.load(home).name
    (statement,) = own_statements(home, party, [read_certificate(path)]).values()
    if wrong := against(view, statement):
        raise NotVerified(f"run {statement.run}: {wrong}. Put the newest copy back, or see --restored.")
    typer.echo(f"run {statement.run}: the ledger holds what '{party}' signed for, and its head of that time")


def show_restored(home: Path, certificates: list[Path], plans: list[Path], write_off: bool) -> None:
    from fed_node.restoring import Known, make_up
    from fedsynth.certificate.checking import read_certificate

    known = Known(tuple(map(read_certificate, certificates)), tuple(map(read_plan, plans)))
    for line in make_up(home, known, write_off=write_off):
        typer.echo(line)
