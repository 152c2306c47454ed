"""`fedsynth evaluate`: is this synthetic table faithful, useful and safe?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from synth.metrics.evaluation import Evaluation

LARGEST_SEED = 2**32 - 1  # scikit-learn takes no larger one


def evaluate(
    real: Annotated[Path, typer.Argument(help="The rows the synthesizer was trained on: CSV, CSV.gz or Parquet.")],
    synthetic: Annotated[Path, typer.Argument(help="The synthetic table.")],
    holdout: Annotated[
        Path | None,
        typer.Option(help="Real rows the synthesizer never saw; without them risks and usefulness are only estimates."),
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(help="The schema, or a plan with one. Left out: drafted from the real rows.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="With a drafted schema: the column that models learn to predict.")
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="certificate.json of the release, told in words in the report.")
    ] = None,
    secret: Annotated[
        str | None,
        typer.Option(
            help="Attribute disclosure: the column to guess. Left out: the target, or the first discrete one."
        ),
    ] = None,
    known: Annotated[
        list[str] | None,
        typer.Option(help="Attribute disclosure: a column the attacker may know; give it several times."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for evaluation.json and report.html.")] = Path(
        "evaluation"
    ),
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Same seed, same figures.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print evaluation.json instead of a summary.")] = False,
) -> None:
    """Compare a SYNTHETIC table with the REAL one, and write evaluation.json and report.html.

    What it writes holds exact statistics of the real rows: keep it where those rows may be. An earlier evaluation in
    --out is replaced, the report of a simulation is not.

    Examples:

      fedsynth evaluate train.csv runs/demo/synthetic.csv --holdout test.csv --schema schema.yaml

      fedsynth evaluate train.csv other-tool.csv --target income --json

      fedsynth evaluate train.csv synthetic.csv --secret diagnosis --known age --known sex --known postcode

    Exit codes: 0 written, 2 a table, schema or certificate cannot be read or does not fit, or --out holds another
    report, 5 nothing can be written.
    """
    from fedsynth.evaluation import files as files
    from fedsynth.report.subject import Subject, provenance
    from synth.metrics.evaluate import evaluate as measure

    files.require_place(out)
    tables = files.Tables(real, synthetic, holdout)
    described, origin = files.schema_for(tables, schema, target)
    promise = files.certified(certificate, synthetic)
    readings = files.read_all(tables, described, seed, drafted=schema is None)
    rows = {role: reading.table for role, reading in readings.items()}
    with _bar(Console(stderr=True)) as progress:
        found = measure(
            rows["real"],
            rows["synthetic"],
            described,
            rows.get("holdout"),
            seed,
            progress,
            quasi_identifiers=known,
            secret=secret,
        )
    found = files.with_samplings(found, readings)
    found = found.model_copy(update={"sequences": files.sequences_of(tables, described, seed)})
    listed = files.described(tables, {role: reading.rows_in_file for role, reading in readings.items()})
    subject = Subject(found, described, provenance(listed, origin, described), *promise)
    written = files.write_files(subject, out)
    console = Console(stderr=as_json)
    if as_json:
        typer.echo(files.as_json(subject), nl=False)
    else:
        if schema is None:
            console.print(f"Schema: {origin}.", markup=False)
        if left_out := subject.provenance.left_out:
            names = ", ".join(left_out)
            console.print(f"Not compared, because they are identifiers: {names}.", style="yellow", markup=False)
        show(console, found)
        console.print("\n".join(f"  {path}" for path in written), markup=False, highlight=False)
    for words in subject.alarms:  # last, where nobody scrolls past them
        console.print(words, style="bold red", soft_wrap=True, markup=False, highlight=False)


def show(console: Console, found: Evaluation) -> None:
    """The headline figures beside what real data would score, and every attack beside its control."""
    from fedsynth.report.caution import caution

    console.print(_scores(found))
    console.print(_attacks(found))
    for words in found.samplings:
        console.print(f"Sampled: {words}.", markup=False, highlight=False)
    if few := caution(found):
        console.print(few, style="bold yellow", soft_wrap=True, markup=False, highlight=False)


def _scores(found: Evaluation) -> Table:
    from fedsynth.report.subject import utility_figures
    from fedsynth.report.words import better, number
    from synth.metrics.registry import FIDELITY, UTILITY

    table = _table(f"{found.rows_synthetic:,} synthetic rows beside {found.rows_real:,} real ones")
    for heading in ("figure", "this table", "real data", ""):
        table.add_column(heading, overflow="fold")
    useful = utility_figures(found)
    for fidelity in (metric for metric in FIDELITY if metric.headline):
        score = found.score(fidelity.name)
        note = escape(score.omitted) if score.omitted else better(fidelity)
        table.add_row(fidelity.title, number(score.value), number(score.ceiling), note)
    for measure in (metric for metric in UTILITY if metric.headline):
        figure = useful[measure.name]
        note = escape(figure.omitted) if figure.omitted else better(measure)
        table.add_row(measure.title, number(figure.synthetic), number(figure.real), note)
    return table


def _attacks(found: Evaluation) -> Table:
    from fedsynth.report.subject import attack_rate, is_counted
    from fedsynth.report.words import percent
    from synth.metrics.registry import METRICS

    table = _table("Attacks: success about people in the data, and about strangers")
    for heading in ("attack", "success", "strangers", "risk (95 %)", ""):
        table.add_column(heading, overflow="fold")
    for risk in (risk for risk in found.risks if not risk.weak_evidence):
        rate = attack_rate(risk)
        success = "–" if rate is None else percent(rate.value)
        null = "–" if risk.null is None else percent(risk.null.value)
        remains = f"≤ {percent(risk.value.high)}" if is_counted(risk) and risk.value is not None else ""
        note = "[bold red]worse than its control[/]" if risk.flagged else escape(risk.omitted or "")
        table.add_row(METRICS[risk.metric].title, success, null, remains, note)
    return table


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", expand=False)


@contextmanager
def _bar(console: Console) -> Iterator[Callable[[str, float], None]]:
    """A bar on a terminal; nothing elsewhere, where it would only fill a log."""
    columns = (TextColumn("{task.description:<32}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("reading", total=1.0)
        yield lambda what, share: progress.update(task, description=what, completed=share)
