"""`fedsynth schema`: propose, check and describe the public document everything rests on."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fed_node.source import read_table_as_text
from fedsynth.documents import read_plan, read_schema, write_yaml
from fedsynth.draft import draft_schema, lines_to_keep
from fedsynth.table_file import require_new_file
from synth.messages.archive import write_durably
from synth.plan import Plan, parse_schema
from synth.printable import escaped
from synth.schema import Schema

app = typer.Typer(no_args_is_help=True, help="Draft, check and export schemas and plans.")

WARNING = (
    "THIS SCHEMA BECOMES PUBLIC. It was read off your data: every bound and every label below is a fact about your "
    "rows. Before you share it, replace bounds by what is possible and labels by what your code book defines, delete "
    "what nobody may know, and mark identifiers."
)


class Document(StrEnum):
    schema = "schema"
    plan = "plan"


@app.command()
def draft(
    file: Annotated[Path, typer.Argument(help="A table: CSV, CSV.gz or Parquet.")],
    target: Annotated[str | None, typer.Option(help="Column that a model would predict.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A new file; standard output if left out.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file of --out.")] = False,
) -> None:
    """Propose a schema from a local FILE. The proposal must be reviewed: a schema is public.

    Exit codes: 0 proposed, 2 the file cannot be read or no schema describes it, 5 --out cannot be written.
    """
    if out is not None:
        require_new_file(out, overwrite)
    table = read_table_as_text(file)
    content = draft_schema(table, target)
    parse_schema(content)
    remarks = [WARNING, *_omissions(lines_to_keep(content, table))]
    text = "".join(f"# {line}\n" for remark in remarks for line in _wrapped(remark)) + write_yaml(content)
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_durably(out, text.encode())
    console = Console(stderr=True)
    console.print("[bold yellow]Review before sharing.[/]")
    for remark in remarks:
        console.print(remark, markup=False, highlight=False)


@app.command()
def check(file: Annotated[Path, typer.Argument(help="A schema or a plan, YAML or JSON.")]) -> None:
    """Check a schema or plan FILE, print its digest and, for a plan, how much of the table will be noise.

    Exit codes: 0 it holds, 2 it does not, or cannot be read.
    """
    from fedsynth.commands.forecasting import show_forecast
    from fedsynth.documents import read_document

    content = read_document(file)
    if isinstance(content, dict) and "columns" in content:
        schema = read_schema(file)
        typer.echo(f"schema with {len(schema.released)} released columns, digest {schema.digest()}")
    else:
        plan = read_plan(file)
        typer.echo(f"plan '{plan.name}' for {len(plan.parties)} parties, digest {plan.digest()}")
        typer.echo(f"its schema with {len(plan.table.released)} released columns, digest {plan.table.digest()}")
        show_forecast(Console(highlight=False), plan)


@app.command()
def export(which: Annotated[Document, typer.Argument(help="Which document to describe.")]) -> None:
    """Print the JSON Schema of a schema or plan, for editors that complete and check as you type.

    Exit codes: 0 printed, 2 there is no such document.
    """
    model = Schema if which is Document.schema else Plan
    typer.echo(json.dumps(model.model_json_schema(by_alias=True), indent=2))


def _omissions(identifiers: list[str]) -> list[str]:
    """What the draft leaves out, in words; names quoted by `repr`, since a comment must not break into two lines."""
    if not identifiers:
        return []
    return [
        f"LEFT OUT, taken for identifiers and so never synthesized nor compared: {len(identifiers)}.",
        *map(escaped, identifiers),
    ]


def _wrapped(text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, 98)
