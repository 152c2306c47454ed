"""Which rows are held against which schema, and the report: for the party's eyes only."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from fed_node.consent.approvals import Approvals
from fed_node.linkage.people import check_source
from fed_node.settings import PartySettings
from fed_node.source import DataReport, Source, check_data, source_of
from fedsynth.documents import read_document, read_plan, read_schema
from synth.errors import DataError, InputError
from synth.plan import Plan
from synth.printable import escaped


def source_to_check(home: Path | None, data: Path | None) -> Source:
    if data is not None:
        return source_of(data)
    if home is None:
        raise InputError("which rows? Give --home DIR, or --data FILE with --schema FILE")
    return PartySettings.load(home).source(home)


def reports_on(source: Source, home: Path | None, path: Path | None) -> list[DataReport]:
    """The rows held against a schema, a plan, or every plan that is approved here."""
    if path is not None:
        content = read_document(path)
        if isinstance(content, dict) and "columns" in content:
            return [check_data(source, read_schema(path))]
        return [_against(source, read_plan(path), home)]
    approvals = Approvals(home / "approved") if home is not None else None
    plans = [approvals.get(digest) for digest in approvals.digests()] if approvals else []
    if not plans:
        raise InputError("which schema? Give --schema FILE (a schema or a plan); no plan is approved here yet")
    tables = {(plan.table.digest(), plan.partition): plan for plan in plans}
    return [_against(source, plan, home) for plan in tables.values()]


def _against(source: Source, plan: Plan, home: Path | None) -> DataReport:
    """A plan by columns says what this party's file must hold, so it must be known which party that is."""
    if plan.partition == "rows":
        return check_data(source, plan.table)
    if home is None:
        raise InputError("the plan is by columns: give --home, so that it is known which columns are yours")
    name = PartySettings.load(home).name
    if name not in plan.holders:
        raise InputError(f"the plan gives '{name}' no columns: no rows of yours are read, so there is nothing to check")
    return check_source(plan, name, source)


def show_report(console: Console, report: DataReport) -> None:
    """What does not fit, by column and row number, and what the schema's rules will make of it."""
    if report.fits:
        console.print(escaped(str(report), keep="\n"), markup=False)
        return
    table = Table(
        title=f"{escape(str(report.place))} does not fit the schema (the header is row 1)", title_justify="left"
    )
    for heading in ("column", "what does not fit", "cells", "rows", "by the schema's rules they", "what to do"):
        table.add_column(heading, overflow="fold")
    for problem in report.problems:
        more = ", …" if problem.cells > len(problem.rows) else ""
        rows = ", ".join(map(str, problem.rows)) + more if problem.rows else ""
        outcome = problem.outcome or "cannot be used"
        cells = (problem.column, problem.what, str(problem.cells or ""), rows, outcome, problem.remedy)
        table.add_row(*(Text(escaped(cell)) for cell in cells))  # a name is no markup
    console.print(table)
    console.print(report.rules(), markup=False)


def show_data(console: Console, home: Path, plan: Plan) -> None:
    """The rows beside the plan that would use them, so that whoever approves decides with open eyes.

    Where they cannot be reached (a pod without the volume, a database that is down), that is said, and no more. Two
    rows of one person are refused here, where no rule could say which of them is right.
    """
    settings = PartySettings.load(home)
    if plan.partition == "columns" and settings.name not in plan.holders:
        console.print("You hold no columns: no rows of yours are read.", markup=False)
        return
    try:
        report = check_source(plan, settings.name, settings.source(home))
    except (InputError, OSError) as error:
        why = str(error) if isinstance(error, InputError) else type(error).__name__
        console.print(f"Your rows could not be looked at from here: {why}", style="yellow", markup=False)
        console.print("Check them where they are, with `fedsynth node check-data`, before you approve.", markup=False)
        return
    console.print("Your rows, held against this plan's schema (nobody else sees this):", markup=False)
    show_report(console, report)
    if plan.partition == "columns" and not report.usable:
        raise DataError(str(report))
