"""A whole federation on one machine: the parties, the aggregator and the release, through the code that is deployed.

Under the output folder, `work/` holds what a resumed run needs: the effective plan, the aggregator's checkpoint and
one home folder per party (its settings, approved plan, ledger, stored answers, log and, with --partition, its rows).
When the run is done, rows, answers and checkpoint are removed; ledgers and logs stay.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from aggregator.publish import Release
from aggregator.run import Workspace, synthesize
from aggregator.sums.exchange import GridExchange
from aggregator.watch import Watch
from crypto.keys import Identity, IdentityKey
from fed_node.linkage.people import check_source
from fed_node.settings import PartySettings
from fed_node.source import DataReport, Source, check_data, read_records, read_table_as_text, source_of
from fedsynth.documents import write_yaml
from fedsynth.simulation.columns import columns_apart, cut_by_columns, joined_records
from fedsynth.simulation.local_grid import LocalGrid
from fedsynth.simulation.partition import Partition
from fedsynth.simulation.whole_units import partition_units, units_in
from synth.encoding.records import Records
from synth.errors import DataError, InputError
from synth.messages.archive import write_durably
from synth.plan import Plan, parse_plan

ROWS = "rows.csv"  # a part of a partitioned table, in the party's home
ANSWER_TIMEOUT_SECONDS = 24 * 3600.0  # a simulated party is slow, never silent


@dataclass(frozen=True)
class Folders:
    """The layout under --out."""

    out: Path

    @property
    def work(self) -> Path:
        return self.out / "work"

    @property
    def plan(self) -> Path:
        return self.work / "plan.json"

    @property
    def key(self) -> Path:
        """The aggregator's, made for this run."""
        return self.work / "aggregator.key"

    @property
    def release(self) -> Path:
        return self.out / "certificate.json"

    def party(self, name: str) -> Path:
        return self.work / "parties" / name


def prepare(content: dict[str, Any], files: dict[str, Path], folders: Folders, seed: int | None) -> Plan:
    """Set up every party's home on its own data file; returns the plan."""
    plan = parse_plan(content)
    names = {party.name for party in plan.parties}
    if names != set(files):
        raise InputError(
            f"the plan's parties are {', '.join(sorted(names))}, but --data names {', '.join(sorted(files))}; "
            "give each party of the plan exactly one --data NAME=FILE"
        )
    for name, path in files.items():
        if not path.is_file():
            raise InputError(f"the data file of party '{name}' is missing: {path}")
    _write_homes(plan, {name: path.resolve() for name, path in files.items()}, folders, seed)
    return plan


def prepare_partition(
    content: dict[str, Any], file: Path, how: Partition, count: int | None, folders: Folders, seed: int | None
) -> Plan:
    """Split a table; the parties become the parts, with their sizes as declared row counts."""
    if count is not None:
        content = content | {"parties": [{"name": f"party-{n}", "rows": 2} for n in range(1, count + 1)]}
    plan = parse_plan(content)
    table = read_table_as_text(file)
    parts = partition_units(table, plan, how, seed or 0)
    plan = parse_plan(
        content | {"parties": [{"name": name, "rows": units_in(part, plan.table)} for name, part in parts.items()]}
    )
    prepare_tables(plan, parts, folders, seed)
    return plan


def prepare_columns(content: dict[str, Any], file: Path, count: int | None, folders: Folders, seed: int | None) -> Plan:
    """Cut a table by columns; every party declares as many rows as there are."""
    table = read_table_as_text(file)
    content = cut_by_columns(content, count)
    content = content | {"parties": [party | {"rows": len(table)} for party in content["parties"]]}
    plan = parse_plan(content)
    prepare_tables(plan, columns_apart(table, plan, seed or 0), folders, seed)
    return plan


def prepare_tables(plan: Plan, tables: Mapping[str, pd.DataFrame], folders: Folders, seed: int | None) -> None:
    """Set up every party's home on a copy of its rows, which is removed when the run is done."""
    if set(tables) != {party.name for party in plan.parties}:
        names = ", ".join(party.name for party in plan.parties)
        raise InputError(f"the plan's parties are {names}; give a table for each of them, under these names")
    for name, table in tables.items():
        write_durably(folders.party(name) / ROWS, table.to_csv(index=False).encode())
    _write_homes(plan, dict.fromkeys(tables, Path(ROWS)), folders, seed)


def check_rows(plan: Plan, folders: Folders, test: Path | None) -> Iterator[DataReport]:
    """How every party's rows, and the held-out ones, fit; what cannot be used ends it before anything is spent."""
    reports = (check_source(plan, name, source) for name, source in _sources(plan, folders).items())
    for report in chain(reports, () if test is None else (check_data(source_of(test), plan.table),)):
        if not report.usable:
            drop(folders)
            raise DataError(str(report))
        yield report


def run(plan: Plan, folders: Folders, seed: int | None, watch: Watch) -> Release:
    """Start the parties, run the aggregator, clean up. An interrupted run can be resumed."""
    homes = {party.name: folders.party(party.name) for party in plan.parties}
    grid = LocalGrid(homes, processes=os.cpu_count() or 1)
    try:
        exchange = GridExchange(grid, ANSWER_TIMEOUT_SECONDS)
        roster = {name: _identity(home) for name, home in homes.items()}
        workspace = Workspace(folders.work, folders.out, simulated=True, seed=seed, identity=folders.key, roster=roster)
        release = synthesize(plan, exchange, workspace, watch)
    finally:
        grid.close()
    return release


def _identity(home: Path) -> Identity:
    return IdentityKey.from_pem((home / "identity.key").read_bytes()).identity


def real_records(plan: Plan, folders: Folders) -> Records:
    """All parties' rows together: on one machine there is nobody to keep them from."""
    sources = _sources(plan, folders)
    if plan.partition == "columns":
        return joined_records(plan, sources)
    return Records.concat([read_records(source, plan.table) for source in sources.values()])


def _sources(plan: Plan, folders: Folders) -> dict[str, Source]:
    """Where the parties' rows are; a party that only deals has none."""
    names = plan.holders if plan.partition == "columns" else [party.name for party in plan.parties]
    return {name: PartySettings.load(folders.party(name)).source(folders.party(name)) for name in names}


def load_unfinished(folders: Folders) -> tuple[Plan, int | None]:
    """The plan and seed of an interrupted run."""
    if not folders.plan.exists():
        raise InputError(f"there is no unfinished run under {folders.out}; start one without --resume")
    state = json.loads(folders.plan.read_text())
    return parse_plan(state["plan"]), state["seed"]


def _write_homes(plan: Plan, data: dict[str, Path], folders: Folders, seed: int | None) -> None:
    from fed_node.consent import administration

    keys = {name: IdentityKey.generate() for name in data}
    for name, path in data.items():
        home = folders.party(name)
        settings = {
            "name": name,
            "data": source_of(path).model_dump(mode="json"),
            "seed": seed,
            "peers": {peer: key.identity.to_text() for peer, key in keys.items() if peer != name},
        }
        write_durably(home / "party.yaml", write_yaml(settings).encode())
        write_durably(home / "identity.key", keys[name].to_pem())
        administration.approve(home, plan)
    write_durably(folders.key, IdentityKey.generate().to_pem())
    state = {"plan": plan.model_dump(mode="json", by_alias=True), "seed": seed}
    write_durably(folders.plan, json.dumps(state, indent=2).encode())


def clean(plan: Plan, folders: Folders) -> None:
    """After a finished run: remove rows, answers and checkpoint; keep ledgers and logs."""
    for party in plan.parties:
        (folders.party(party.name) / ROWS).unlink(missing_ok=True)
        shutil.rmtree(folders.party(party.name) / "answers", ignore_errors=True)
    (folders.work / "checkpoint.npz").unlink(missing_ok=True)
    folders.plan.unlink(missing_ok=True)


def drop(folders: Folders) -> None:
    """Forget an earlier run in this folder."""
    shutil.rmtree(folders.work, ignore_errors=True)
