"""`fedsynth plan`: write the document that a consortium agrees on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fedsynth.documents import read_document, read_schema, write_yaml
from fedsynth.plan_content import new_plan
from synth.errors import InputError
from synth.messages.archive import write_durably
from synth.plan import parse_plan
from synth.synthesizers.registry import FAMILIES

app = typer.Typer(no_args_is_help=True, help="Write plans.")


REMARKS = {
    "name": "Another name is another plan: a plan is carried out once.",
    "schema": "A path beside this file, or the schema itself. It is public.",
    "parties": "Who takes part, and how many rows each declares, rounded as it likes. Public.",
    "synthesizer": "Which model; docs/choosing-a-synthesizer.md. Its settings: docs/plan-reference.md.",
    "privacy": "What each party spends on all of it, for one row (or one person) added or removed.",
    "secure_sum": "One party: there is nobody to hide a sum from. Left out with several: encrypted and masked.",
    "output": "How many synthetic rows.",
}


@app.command()
def new(
    schema: Annotated[Path | None, typer.Option(help="The schema's file, YAML or JSON; asked for if left out.")] = None,
    party: Annotated[
        list[str] | None, typer.Option(help="NAME=ROWS, once for each party; asked for if left out.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the plan; never over another.")] = Path(
        "plan.yaml"
    ),
    epsilon: Annotated[float, typer.Option(help="The budget ε.")] = 1.0,
    delta: Annotated[float | None, typer.Option(help="δ; well below one row if left out.")] = None,
    synthesizer: Annotated[str, typer.Option(help=f"The model family: {', '.join(FAMILIES)}.")] = "marginals",
    rows: Annotated[int | None, typer.Option(min=1, help="Synthetic rows; as many as real ones if left out.")] = None,
    name: Annotated[str | None, typer.Option(help="The plan's name; that of the file if left out.")] = None,
) -> None:
    """Write a plan that can be approved as it is, every part explained, and foretell how much will be noise.

    Example:

      fedsynth plan new --schema my.schema.yaml --party north=10000 --party south=8000 -o plan.yaml

    Exit codes: 0 written, 2 your input, 5 it cannot be written.
    """
    from fedsynth.commands.forecasting import show_forecast

    _refuse_to_replace(out)
    schema = schema or Path(typer.prompt("The schema's file"))
    read_schema(schema)
    party = party or typer.prompt("Parties and their rows, as in north=10000 south=8000").split()
    declared = dict(_declared(text) for text in party)
    if len(declared) != len(party):
        raise InputError("a party is named twice; give each of them one --party NAME=ROWS")
    content = new_plan(
        name or out.stem,
        read_document(schema),
        declared,
        epsilon=epsilon,
        delta=delta,
        synthesizer=synthesizer,
        drawn=rows,
    )
    plan = parse_plan(content)
    beside = os.path.relpath(schema, out.resolve().parent)
    write_durably(out, _explained(content | {"schema": beside}).encode())
    console = Console(highlight=False)
    console.print(f"Wrote {out}: plan '{plan.name}' for {len(plan.parties)} parties.", markup=False)
    show_forecast(console, plan)


@app.command()
def bundle(
    plan: Annotated[Path, typer.Argument(help="The plan, YAML or JSON, its schema inside or beside it.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the one file; never over another.")],
) -> None:
    """Put PLAN and its schema into one file, which `node approve`, `run` and `verify` all take.

    Its digest is that of the plan: send the file to every party, and say the digest on another way.

    Exit codes: 0 written, 2 the plan does not hold or the file exists, 5 it cannot be written.
    """
    from fedsynth.documents import read_plan_content

    content = read_plan_content(plan)
    found = parse_plan(content)
    _refuse_to_replace(out)
    head = f"# The plan '{found.name}' with its schema. Digest: {found.digest()}\n"
    write_durably(out, (head + write_yaml(content)).encode())
    Console(highlight=False).print(f"Wrote {out}. Digest of the plan: {found.digest()}", markup=False, soft_wrap=True)


def _refuse_to_replace(out: Path) -> None:
    if out.exists():
        raise InputError(f"{out} exists already; choose another --out, or remove it first")


def _explained(content: dict[str, object]) -> str:
    parts = [f"# {REMARKS[key]}\n{write_yaml({key: value})}" for key, value in content.items()]
    return "\n".join(parts)


def _declared(text: str) -> tuple[str, int]:
    name, equals, rows = text.partition("=")
    if not equals or not rows.isdecimal():
        raise InputError(f"'{text}' is not of the form NAME=ROWS, as in north=10000")
    return name, int(rows)
