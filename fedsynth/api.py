"""Synthetic tables from Python, by the code that the command line and clusters run.

    from fedsynth import synthesize

    result = synthesize(table, epsilon=1.0, target="income")
    result.table                      # a DataFrame
    result.report()                   # shown in a notebook
    result.sample(500, where={"sex": "Female"})

A mapping of names to tables is a federation: every party a process of its own, its rows counted apart, only sums
opened.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd

from aggregator.watch import Silent, Watch
from fedsynth.draft import draft_schema as drafted
from fedsynth.plan_content import new_plan
from fedsynth.result import Result
from fedsynth.simulation import simulate as simulation
from fedsynth.simulation.simulate import Folders
from fedsynth.simulation.whole_units import units_in
from synth.errors import InputError
from synth.plan import Plan, parse_plan, parse_schema
from synth.schema import Schema as PublicSchema

ONE_TABLE = "table"  # the party's name where there is only one


class Schema(PublicSchema):
    """The public description of a table, which can also be drafted from one."""

    @classmethod
    def draft(cls, table: pd.DataFrame, target: str | None = None) -> Schema:
        """A schema read off a table, to be reviewed before it is shared: a schema is public."""
        return cls.model_validate(draft_schema(table, target).model_dump(mode="json"))


def draft_schema(table: pd.DataFrame, target: str | None = None) -> PublicSchema:
    """The same, as the kit's own."""
    return parse_schema(drafted(_as_text(table), target))


def synthesize(
    data: pd.DataFrame | Mapping[str, pd.DataFrame],
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    target: str | None = None,
    schema: PublicSchema | None = None,
    plan: Plan | None = None,
    synthesizer: str | None = None,
    rows: int | None = None,
    test: pd.DataFrame | None = None,
    out: str | Path | None = None,
    seed: int | None = None,
    progress: bool = True,
) -> Result:
    """A synthetic table from one table, or from a table for each party.

    Without a `schema` one is drafted from the data, which is fit for trying out only: its bounds and labels are facts
    about the rows, and `result.plan` shows them. ε is 1 if it is left out. A `plan` says everything, so nothing else
    may be said beside it but `test`, `out`, `seed` and `progress`. `test` are rows that nobody trained on, to measure
    utility. `out` is where to keep everything; a temporary folder, gone with the result, if it is left out.
    """
    tables = {ONE_TABLE: data} if isinstance(data, pd.DataFrame) else dict(data)
    if not tables:
        raise InputError("there is no table to learn from; give a DataFrame, or one for each party")
    said = {"epsilon": epsilon, "delta": delta, "synthesizer": synthesizer, "drawn": rows}
    if plan is None:
        plan = _plan_for(tables, schema, target, {name: value for name, value in said.items() if value is not None})
    elif any(each is not None for each in (*said.values(), schema, target)):
        raise InputError("a plan says ε, schema, synthesizer and rows itself; give either the plan or these")
    folder = Path(tempfile.mkdtemp(prefix="fedsynth-") if out is None else out)
    with _kept_if_done(folder, out is None):
        result = _run(plan, tables, Folders(folder), test, seed, progress)
    if out is None:
        weakref.finalize(result, shutil.rmtree, folder, ignore_errors=True)
    return result


def _plan_for(
    tables: Mapping[str, pd.DataFrame], schema: PublicSchema | None, target: str | None, said: dict[str, Any]
) -> Plan:
    found = schema or draft_schema(pd.concat(tables.values(), ignore_index=True), target)
    counts = {name: units_in(table, found) for name, table in tables.items()}
    return parse_plan(new_plan("synthesize", found.model_dump(mode="json"), counts, **({"epsilon": 1.0} | said)))


@contextmanager
def _kept_if_done(folder: Path, temporary: bool) -> Iterator[None]:
    try:
        yield
    except BaseException:
        if temporary:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _run(
    plan: Plan,
    tables: Mapping[str, pd.DataFrame],
    folders: Folders,
    test: pd.DataFrame | None,
    seed: int | None,
    progress: bool,
) -> Result:
    from fedsynth.simulation.report import write_report

    if folders.release.exists() or folders.plan.exists():
        raise InputError(f"{folders.out} already holds a run; choose another folder")
    simulation.prepare_tables(plan, tables, folders, seed)
    held_out = _held_out(test, folders)
    for _ in simulation.check_rows(plan, folders, held_out):
        pass  # what cannot be used raises; what the schema's rules mend is in `fedsynth node check-data`
    with _watching(plan, progress) as watch:
        release = simulation.run(plan, folders, seed, watch)
        write_report(plan, folders, release, held_out, watch)
    simulation.clean(plan, folders)
    if held_out is not None:
        held_out.unlink()  # real rows, like those that `clean` removes
    return Result(folders.out, plan, release.table, release.certificate)


def _held_out(test: pd.DataFrame | None, folders: Folders) -> Path | None:
    if test is None:
        return None
    path = folders.work / "test.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    test.to_csv(path, index=False)
    return path


def _as_text(table: pd.DataFrame) -> pd.DataFrame:
    """Cells as a CSV file would hold them, which is how parties keep theirs."""
    return pd.read_csv(StringIO(table.to_csv(index=False)), dtype=str, keep_default_na=False)


@contextmanager
def _watching(plan: Plan, progress: bool) -> Iterator[Watch]:
    """A bar on a terminal and in a notebook, lines elsewhere; nothing where nobody wants to see it."""
    if not progress:
        yield Silent()
        return
    from rich.console import Console

    from fedsynth.commands.progress import ConsoleWatch

    with ConsoleWatch(Console(), "ε" if plan.profile == "rigorous" else "nominal ε") as watch:
        yield watch
