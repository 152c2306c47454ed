"""A whole federation on one machine: the parties, the aggregator and the release, through the code that is deployed.

Under the output folder, `work/` holds what a resumed run needs: the effective plan, the aggregator's checkpoint and
one home folder per party (its settings, approved plan, ledger, stored answers, log and, with --partition, its rows).
When the run is done, rows, answers and checkpoint are removed; ledgers and logs stay.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
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
from fedsynth.plan_content import with_parties
from fedsynth.simulation.columns import columns_apart, cut_by_columns, joined_records
from fedsynth.simulation.local_grid import LocalGrid
from fedsynth.simulation.occupied import wait_for_ledgers
from fedsynth.simulation.partition import Partition
from fedsynth.simulation.whole_units import partition_units, units_in
from synth.encoding.records import Records
from synth.errors import DataError, InputError
from synth.messages.archive import write_durably
from synth.plan import Plan, parse_plan

ROWS = "rows.csv"  # a part of a partitioned table, in the party's home
ANSWER_TIMEOUT_SECONDS = 24 * 3600.0  # a simulated party is slow, never silent
HOMES_AT_ONCE = 8


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
            f"the plan's parties are {', '.join(sorted(names))}, but --data names "
            f"{', '.join(sorted(files)) or 'none'}; give each party of the plan exactly one --data NAME=FILE"
        )
    for name, path in files.items():
        if not path.is_file():
            raise InputError(f"the data file of party '{name}' is missing: {path}")
    placed = {name: path.resolve() for name, path in files.items()}
    _write_homes(plan, placed, folders, seed, list(placed.values()))
    return plan


def prepare_partition(
    content: dict[str, Any], file: Path, how: Partition, count: int | None, folders: Folders, seed: int | None
) -> Plan:
    """Split a table; the parties become the parts, with their sizes as declared row counts."""
    if count is not None:
        content = with_parties(content, {f"party-{n}": 2 for n in range(1, count + 1)})
    plan = parse_plan(content)
    table = read_table_as_text(file)
    parts = partition_units(table, plan, how, seed or 0)
    plan = parse_plan(with_parties(content, {name: units_in(part, plan.table) for name, part in parts.items()}))
    prepare_tables(plan, parts, folders, seed, origin=file)
    return plan


def prepare_columns(content: dict[str, Any], file: Path, count: int | None, folders: Folders, seed: int | None) -> Plan:
    """Cut a table by columns; every party declares as many rows as there are."""
    table = read_table_as_text(file)
    content = cut_by_columns(content, count)
    content = content | {"parties": [party | {"rows": len(table)} for party in content["parties"]]}
    plan = parse_plan(content)
    prepare_tables(plan, columns_apart(table, plan, seed or 0), folders, seed, origin=file)
    return plan


def prepare_tables(
    plan: Plan, tables: Mapping[str, pd.DataFrame], folders: Folders, seed: int | None, origin: Path | None = None
) -> None:
    """Set up every party's home on a copy of its rows, which is removed when the run is done. `origin` is the file
    that they were all taken from, if there is one."""
    if set(tables) != {party.name for party in plan.parties}:
        names = ", ".join(party.name for party in plan.parties)
        raise InputError(f"the plan's parties are {names}; give a table for each of them, under these names")
    for name, table in tables.items():
        write_durably(folders.party(name) / ROWS, table.to_csv(index=False).encode())
    _write_homes(plan, dict.fromkeys(tables, Path(ROWS)), folders, seed, [] if origin is None else [origin])


def check_rows(plan: Plan, folders: Folders, test: Path | None) -> Iterator[DataReport]:
    """How the rows, as their owner keeps them, and the held-out ones fit; what cannot be used ends it before anything
    is spent."""
    try:
        held_out = () if test is None else (check_data(source_of(test), plan.table),)
        for report in chain(held_out, _reports(plan, folders)):
            if not report.usable:
                raise DataError(str(report))
            yield report
    except InputError:
        drop(folders)
        raise


def _reports(plan: Plan, folders: Folders) -> Iterator[DataReport]:
    """Of a table that was split by rows, the table itself: nobody knows the rows of the copies."""
    if (origin := _state(folders)["split"]) is not None:
        yield check_data(source_of(Path(origin)), plan.table)
        return
    yield from (check_source(plan, name, source) for name, source in _sources(plan, folders).items())


def check_test(plan: Plan, test: Path | None) -> None:
    """Held-out rows that cannot be used are told before a run is carried on, not after it."""
    if test is not None and not (report := check_data(source_of(test), plan.table)).usable:
        raise DataError(str(report))


def run(plan: Plan, folders: Folders, seed: int | None, watch: Watch) -> Release:
    """Start the parties, run the aggregator, clean up. An interrupted run can be resumed."""
    homes = {party.name: folders.party(party.name) for party in plan.parties}
    wait_for_ledgers(homes.values())
    grid = LocalGrid(homes, processes=os.cpu_count() or 1)
    try:
        exchange = GridExchange(grid, ANSWER_TIMEOUT_SECONDS, silent_seconds=ANSWER_TIMEOUT_SECONDS)
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
    """The plan and seed of an interrupted run, whose answers so far are about files that must not have changed."""
    if not folders.plan.exists():
        raise InputError(f"there is no unfinished run under {folders.out}; start one without --resume")
    state = _state(folders)
    for path, digest in state["files"].items():
        if Path(path).is_file() and _sha256(Path(path)) != digest:
            raise InputError(
                f"{path} has changed since this run began, and its first answers are about the rows of then. Put the "
                "old file back, or start anew with --overwrite instead of --resume."
            )
    return parse_plan(state["plan"]), state["seed"]


def _state(folders: Folders) -> dict[str, Any]:
    state: dict[str, Any] = json.loads(folders.plan.read_text())
    return {"files": {}, "split": None} | state  # those of before have none


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_homes(
    plan: Plan, data: dict[str, Path], folders: Folders, seed: int | None, origins: Sequence[Path]
) -> None:
    """Every party's home, several at a time: most of it is waiting for the disk."""
    keys = {name: IdentityKey.generate() for name in data}
    peers = {name: key.identity.to_text() for name, key in keys.items()}

    def write(name: str) -> None:
        from fed_node.consent import administration

        home = folders.party(name)
        settings = {
            "name": name,
            "data": source_of(data[name]).model_dump(mode="json"),
            "seed": seed,
            "peers": {peer: text for peer, text in peers.items() if peer != name},
        }
        write_durably(home / "party.yaml", json.dumps(settings, indent=1).encode())  # JSON is YAML, and quick
        write_durably(home / "identity.key", keys[name].to_pem())
        administration.approve(home, plan)

    with ThreadPoolExecutor(HOMES_AT_ONCE) as pool:
        list(pool.map(write, data))
    write_durably(folders.key, IdentityKey.generate().to_pem())
    files = {str(path.resolve()): _sha256(path) for path in origins}
    split = next(iter(files), None) if plan.partition == "rows" and Path(ROWS) in data.values() else None
    dumped = plan.model_dump(mode="json", by_alias=True)
    state = {"plan": dumped, "seed": seed, "files": files, "split": split}
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
