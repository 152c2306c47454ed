"""`fedsynth simulate`: the data scientist's way in."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.panel import Panel

from aggregator.publish import Release
from fed_node.settings import LOG
from fedsynth.commands.checking import show_report
from fedsynth.commands.forecasting import show_forecast
from fedsynth.commands.progress import ConsoleWatch
from fedsynth.documents import read_plan_content
from fedsynth.one_table import is_table, write_plan_for
from fedsynth.plan_content import MOST_ENCRYPTED
from fedsynth.simulation import simulate as simulation
from fedsynth.simulation.occupied import occupied
from fedsynth.simulation.partition import Partition
from fedsynth.simulation.simulate import Folders
from synth.assessment.record import AssessmentRecord
from synth.errors import InputError, Refusal, Withheld
from synth.forecast import forecast
from synth.plan import Plan
from synth.privacy.claims import Claim


class How(StrEnum):
    iid = "iid"
    label_skew = "label-skew"
    quantity_skew = "quantity-skew"
    columns = "columns"


MASKED = (
    f"Counts are masked, not encrypted as well: with more than {MOST_ENCRYPTED} parties whoever opens a sum would be "
    "sent gigabytes. A plan that says `secure_sum: {statistics: ckks}` encrypts them all the same."
)
BY_ROWS: dict[How, Partition] = {
    How.iid: "iid",
    How.label_skew: "label-skew",
    How.quantity_skew: "quantity-skew",
}


def simulate(
    plan: Annotated[
        Path | None,
        typer.Argument(
            help="The plan, YAML or JSON; or a table, for which schema and plan are written. Not with --resume."
        ),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(help="NAME=FILE for each party of the plan; or one FILE together with --partition."),
    ] = None,
    partition: Annotated[
        How | None,
        typer.Option(metavar="HOW", help=f"Split one --data FILE among the parties: {', '.join(How)}."),
    ] = None,
    parties: Annotated[int | None, typer.Option(min=1, help="With --partition or a table: how many parties.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the table, report and certificate.")] = Path(
        "runs/latest"
    ),
    test: Annotated[Path | None, typer.Option(help="Held-out real rows, to measure utility on.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="With a table instead of a plan: ε, 1 if left out.")] = None,
    target: Annotated[str | None, typer.Option(help="With a table: the column that a model would predict.")] = None,
    seed: Annotated[
        int | None, typer.Option(help="Make the run repeatable. The certificate then says that noise was seeded.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run in --out.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what an earlier run left in --out.")] = False,
    evaluate: Annotated[
        bool, typer.Option(help="Compare the table with the real rows: report.json, report.html.")
    ] = True,
) -> None:
    """Run a whole federation on this machine: every party a process of its own, the code that clusters run.

    Examples:

      fedsynth simulate table.csv --epsilon 1 --target income

      fedsynth simulate examples/adult.yaml --data examples/data/adult-train.csv.gz --partition iid

      fedsynth simulate examples/adult-columns.yaml --data examples/data/adult-train.csv.gz --partition columns

      fedsynth simulate plan.yaml --data north=north.csv --data south=south.csv --data west=west.csv

    Exit codes: 0 done, 2 your input, 4 a party refused, 5 the disk, 10 withheld by the plan's gate, 130 interrupted.
    """
    console, folders = Console(), Folders(out)
    with occupied(out):
        if resume:
            effective, seed = simulation.load_unfinished(folders)
            simulation.check_test(effective, test)
        else:
            _refuse_to_lose(folders, overwrite)
            if plan is not None and is_table(plan):
                _refuse_two_tables(plan, data)
                written = write_plan_for(plan, out, parties or 1, 1.0 if epsilon is None else epsilon, target)
                effective = _prepare(written, [str(plan)], partition or How.iid, None, folders, seed)
            else:
                _refuse_two_words(epsilon, target)
                effective = _prepare(plan, data or [], partition, parties, folders, seed)
            for found in simulation.check_rows(effective, folders, test):
                if not found.fits:  # as a real party would be told; it would take part all the same
                    show_report(console, found)
            show_forecast(console, effective)
            if effective.secure_sum.statistics == "masked" and len(effective.parties) > MOST_ENCRYPTED:
                console.print(MASKED, highlight=False)
        release = _run(console, effective, folders, seed, test, evaluate)
    if release.withheld:
        raise Withheld(
            f"the plan's gate is closed: {release.withheld}. The table is kept in {out}, marked by WITHHELD.txt; on a "
            "cluster `fedsynth fetch` would not hand it out."
        )


def _run(
    console: Console, plan: Plan, folders: Folders, seed: int | None, test: Path | None, evaluate: bool
) -> Release:
    from fedsynth.simulation.report import headlines, write_report

    compared: list[str] = []
    try:
        with ConsoleWatch(console, "ε" if plan.profile == "rigorous" else "nominal ε") as watch:
            release = simulation.run(plan, folders, seed, watch)
            if evaluate:
                compared = [headlines(write_report(plan, folders, release, test, watch))]
            simulation.clean(plan, folders)
    except KeyboardInterrupt:
        console.print(f"Stopped. Nothing is lost; continue with: fedsynth simulate --resume --out {folders.out}")
        raise typer.Exit(130) from None
    except Refusal as refusal:
        console.print(_why(folders.party(refusal.party) / LOG), soft_wrap=True, markup=False, highlight=False)
        raise
    _show(console, plan, release, compared)
    return release


def in_words(claim: Claim) -> str:
    """The promise of a release in one sentence."""
    if claim.epsilon is not None:
        return f"(ε, δ) = ({claim.epsilon:.3f}, {claim.delta:g}): {claim.relation}."
    if claim.nominal_epsilon is not None:
        return f"nominal ε = {claim.nominal_epsilon:.3f}; end to end no finite ε holds (faithful profile)."
    return "No privacy is promised: the plan says 'none'."


def _assessed(record: AssessmentRecord | None) -> list[str]:
    """The figures of an assessment, a line each."""
    if record is None:
        return []
    lines = [
        f"  {name:12} {figure.value:7.4f}   between {figure.low:.4f} and {figure.high:.4f}"
        for name, figure in record.figures.items()
    ]
    return ["\n".join(["Assessed on the parties' rows, under the same ε (95 % each end):", *lines])]


def _show(console: Console, plan: Plan, release: Release, compared: list[str]) -> None:
    files = "\n".join(f"  {path}" for path in sorted(release.folder.iterdir()) if path.is_file())
    promised, assessed = in_words(release.certificate.claim), _assessed(release.certificate.assessment)
    told = forecast(plan)
    noise = told.warning if told is not None and told.verdict == "noise" else None
    title = "Synthetic table withheld" if release.withheld else "Mostly noise" if noise else "Synthetic table ready"
    parts = [promised, *([noise] if noise else []), *compared, *assessed, files]
    console.print(Panel("\n\n".join(parts), title=title, expand=False, border_style="red" if noise else "none"))


def _refuse_two_tables(table: Path, data: list[str] | None) -> None:
    if data:
        raise InputError(f"{table} is a table, and so is --data; give a plan with --data, or one table without")


def _refuse_two_words(epsilon: float | None, target: str | None) -> None:
    if epsilon is not None or target is not None:
        raise InputError("--epsilon and --target go with a table; a plan says both itself")


def _prepare(
    plan: Path | None, data: list[str], how: How | None, parties: int | None, folders: Folders, seed: int | None
) -> Plan:
    if plan is None:
        raise InputError("which plan? Give its path, or --resume to continue an interrupted run")
    content = read_plan_content(plan)
    if how is None:
        if parties is not None:
            raise InputError("--parties goes with --partition; without it the plan names the parties")
        files = {name: Path(file) for name, file in (_pair(text, "--data NAME=FILE") for text in data)}
        return simulation.prepare(content, files, folders, seed)
    if len(data) != 1 or ("=" in data[0] and not Path(data[0]).exists()):
        raise InputError("--partition splits one table: give it as one --data FILE")
    if how is How.columns:
        return simulation.prepare_columns(content, Path(data[0]), parties, folders, seed)
    return simulation.prepare_partition(content, Path(data[0]), BY_ROWS[how], parties, folders, seed)


def _why(log: Path) -> str:
    """The last reason in a party's own log: here all parties are this machine's, so the user may read it."""
    lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    reasons = [line["errors"][0]["message"] for line in lines if line.get("errors")]
    reason = reasons[-1] if reasons and reasons[-1] else "no reason in words"
    return f"In the refusing party's log, {log}: {reason}"


def _refuse_to_lose(folders: Folders, overwrite: bool) -> None:
    if folders.plan.exists() and not overwrite:
        raise InputError(
            f"{folders.out} holds an unfinished run: continue it with --resume, drop it with --overwrite, "
            "or choose another --out"
        )
    if folders.release.exists() and not overwrite:
        raise InputError(f"{folders.out} already holds a release; add --overwrite or choose another --out")
    simulation.drop(folders)


def _pair(text: str, form: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise InputError(f"'{text}' is not of the form {form}")
    return name, value
