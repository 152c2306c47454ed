"""`fedsynth sample`: more rows of a finished model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedsynth.table_file import FORMATS, require_new_table, write_table
from synth.errors import Withheld


def sample(
    model: Annotated[Path, typer.Argument(help="model.npz of a finished run.")],
    rows: Annotated[int, typer.Option("--rows", "--sequences", min=1, help="Rows (people, sequences).")] = 1000,
    length: Annotated[int | None, typer.Option(min=1, help="Steps of every sequence; the plan's if left out.")] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(help="A condition, as in 'cost > 1000'. Repeated: rows fulfil all of them."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Same seed, same rows; left out: other ones each time.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help=f"A new file, {FORMATS}; standard output if left out.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file of --out.")] = False,
    despite_gate: Annotated[
        bool, typer.Option("--despite-gate", help="Draw from a model that its plan's gate withheld, too.")
    ] = False,
) -> None:
    """Draw more rows from a finished MODEL, without asking any party and without further cost in privacy.

    Conditions: 'sex = f', 'cost > 1000', 'age in 18..65', 'ward in a, b', 'admitted >= 2020-03-01'. Labels have = and
    != and 'in'; numbers and dates also <, <=, >, >=.

    Where the plan is about people or sequences, --sequences says how many of them; a model of neighbouring steps
    (unit 'step') continues them to any --length.

    Example:

      fedsynth sample runs/latest/model.npz --where 'age in 18..65' --where 'sex = f' -o women.csv

    Exit codes: 0 drawn, 2 the model cannot be read, or conditions name what the schema does not have, contradict each
    other or are too rare, 5 the file cannot be written, 10 withheld by the plan's gate.
    """
    from fedsynth.drawing import draw_rows
    from fedsynth.model_file import read_model

    if out is not None:
        require_new_table(out, overwrite)
    found = read_model(model)
    if not despite_gate:
        _require_open_gate(model)
    if out is None or out.suffix != ".parquet":
        found.require_no_formulas()
    table = draw_rows(found if length is None else found.of_length(length), rows, where or [], seed)
    if out is None:
        typer.echo(table.to_csv(index=False), nl=False)
    else:
        write_table(table, out)


def _require_open_gate(model: Path) -> None:
    """More rows of a withheld table are withheld, too; the mark lies beside both."""
    from aggregator.publish import WITHHELD

    mark = model.parent / WITHHELD
    if mark.exists():
        raise Withheld(
            f"{mark.read_text().strip()} No rows were drawn from {model}; `--despite-gate` draws them all the same."
        )
