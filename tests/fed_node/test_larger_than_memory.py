"""Tables that are not in memory: counted in the engine, streamed, or kept on disk, and nobody outside can tell."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import fed_node.source as source_module
from fed_node.source import CsvSource, EngineSource, ParquetSource, open_rows, read_records
from fed_node.source.engines.rows import EngineRows
from fed_node.source.streamed import StreamedRows
from synth.encoding.records import Records
from synth.errors import InputError
from synth.grid import grid_of
from synth.interface import Sum
from synth.messages.wire import Envelope
from synth.neural import encoded
from synth.plan import parse_schema
from synth.privacy.noise import seeded_source
from synth.statistics.mixture_rounds import statistics_inquiry
from synth.synthesizers.registry import build
from tests.contract.test_synthesizers import SMALLEST
from tests.fed_node.test_neighbours import PLANS, VICTIM, Watched
from tests.small import SCHEMA, plan_of, table

PARQUET = {"kind": "parquet", "path": "rows.parquet", "engine": "duckdb"}
ROW: dict[str, Any] = {"patient": "p", "age": 50, "dose": 5.0, "sex": "f", "ward": "a", "smoker": "no", "died": "no"}
ROW |= {"admitted": 18300 * 86_400_000}
ODD_ROWS: dict[str, dict[str, Any]] = {
    "a row like others": {},
    "out of bounds": {"age": 2**62, "dose": -1e308},
    "infinite": {"dose": float("inf")},
    "no number": {"dose": float("nan")},
    "empty": dict.fromkeys(ROW),
    "undeclared": {"sex": "x", "ward": "y", "died": "NA"},
    "no text": {"sex": b"\xff\xfe"},  # which DuckDB refuses to read, with all other rows
    "a time beyond its own": {"admitted": 2**62},  # milliseconds, which DuckDB cannot turn into its microseconds
}


def typed(rows: int) -> pa.Table:
    frame = table(rows)
    days = pd.to_datetime(frame["admitted"]).to_numpy().astype("datetime64[ms]").astype(np.int64)
    columns: dict[str, Any] = {name: frame[name].to_numpy(dtype=object) for name in frame}
    columns |= {"age": frame["age"].astype(int), "dose": pd.to_numeric(frame["dose"]), "admitted": days}
    return pa.table({name: _column(name, list(cells)) for name, cells in columns.items()})


def _column(name: str, cells: list[Any]) -> pa.Array:
    """Text by way of bytes, so that they may be no text."""
    if name == "age":
        return pa.array(cells, pa.int64())
    if name == "dose":
        return pa.array(cells, pa.float64())
    if name == "admitted":
        return pa.array(cells, pa.int64()).view(pa.timestamp("ms"))
    data = [cell.encode() if isinstance(cell, str) else cell for cell in cells]
    return pa.array(data, pa.binary()).view(pa.string())


def with_row(base: pa.Table, change: dict[str, Any]) -> pa.Table:
    row = ROW | change
    return pa.concat_tables([base, pa.table({name: _column(name, [row[name]]) for name in base.column_names})])


class WatchedInDuckDb(Watched):
    def __init__(self, folder: Path, plan: Any, rows: pa.Table) -> None:
        super().__init__(folder, plan, b"patient\n")
        home = folder / VICTIM
        pq.write_table(rows, home / "rows.parquet")
        content = yaml.safe_load((home / "party.yaml").read_text()) | {"data": PARQUET}
        (home / "party.yaml").write_text(yaml.safe_dump(content))
        self.victim.settings = type(self.victim.settings).load(home)


def test_a_row_changes_its_own_cells_and_nothing_else_that_leaves(tmp_path: Path) -> None:
    """Even one that the engine fails on. The noise of one seed: what is left is the row's own cells."""
    plan, base = PLANS["marginals, plain"], typed(60)
    grid, ask = grid_of(plan), statistics_inquiry(plan).ask(0)
    assert ask is not None
    forms, counts, exact = [], [], []
    tables = [base, *(with_row(base, change) for change in ODD_ROWS.values()), base.slice(1), base.slice(0, 0)]
    for number, rows in enumerate(tables):
        world = WatchedInDuckDb(tmp_path / str(number), plan, rows)
        world.begin()
        world.ask_again([ask])
        reply = world.replies[-1][1]
        assert isinstance(reply, Envelope)
        forms.append(world.forms())
        counts.append(next(array for array in reply.arrays.values() if array.shape == (grid.released_size,)))
        file = tmp_path / str(number) / VICTIM / "rows.parquet"
        exact.append(grid.released(grid.count(read_records(ParquetSource(path=file), plan.table))))
    assert all(form == forms[0] for form in forms)
    for count, truth in zip(counts, exact, strict=True):
        np.testing.assert_array_equal(count - counts[0], truth - exact[0])


@pytest.mark.parametrize("what", ["no text", "a time beyond its own"])
def test_what_an_engine_fails_on_is_read_here(tmp_path: Path, what: str, caplog: pytest.LogCaptureFixture) -> None:
    schema = parse_schema(SCHEMA)
    pq.write_table(with_row(typed(30), ODD_ROWS[what]), tmp_path / "rows.parquet")
    rows = open_rows(ParquetSource(path=tmp_path / "rows.parquet", engine="duckdb"), schema, tmp_path / "scratch")
    grid = grid_of(PLANS["marginals, plain"])
    expected = read_records(ParquetSource(path=tmp_path / "rows.parquet"), schema).histograms(grid)
    np.testing.assert_array_equal(rows.histograms(grid), expected)
    assert "piece by piece" in caplog.text


def test_text_that_only_python_reads_is_streamed(tmp_path: Path) -> None:
    """Numbers and times as text."""
    table(200).to_parquet(tmp_path / "rows.parquet")
    schema = parse_schema(SCHEMA)
    rows = open_rows(ParquetSource(path=tmp_path / "rows.parquet", engine="duckdb"), schema, tmp_path)
    grid = grid_of(PLANS["marginals, plain"])
    assert isinstance(rows, EngineRows)
    assert rows.counted(grid, lambda engine, places: np.zeros(1, np.int64)) is None
    expected = read_records(ParquetSource(path=tmp_path / "rows.parquet"), schema)
    np.testing.assert_array_equal(rows.histograms(grid), expected.histograms(grid))


def test_the_order_of_rows_is_nobodys(tmp_path: Path) -> None:
    base, grid = typed(300), grid_of(PLANS["marginals, plain"])
    found = []
    for name, rows in (("a", base), ("b", base.take(np.random.default_rng(1).permutation(300)))):
        pq.write_table(rows, tmp_path / name, row_group_size=64)
        source = ParquetSource(path=tmp_path / name, engine="duckdb")
        found.append(open_rows(source, parse_schema(SCHEMA), tmp_path).histograms(grid))
    np.testing.assert_array_equal(*found)


def test_a_large_file_is_counted_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = parse_schema(SCHEMA)
    pq.write_table(typed(50), tmp_path / "rows.parquet")
    table(50).to_csv(tmp_path / "rows.csv", index=False)
    parquet, text = ParquetSource(path=tmp_path / "rows.parquet"), CsvSource(path=tmp_path / "rows.csv")
    assert isinstance(open_rows(parquet, schema, tmp_path), Records)
    assert not isinstance(open_rows(text, schema, tmp_path).at_hand().columns["age"], np.memmap)
    monkeypatch.setattr(source_module, "LARGE", 100)
    monkeypatch.setattr(source_module, "LARGE_TEXT", 100)
    assert isinstance(open_rows(parquet, schema, tmp_path), EngineRows)
    on_disk = open_rows(text, schema, tmp_path / "scratch").at_hand()
    assert isinstance(on_disk.columns["age"], np.memmap)
    assert list((tmp_path / "scratch").iterdir()) == []  # files without names
    in_memory = read_records(text, schema)
    for name, values in in_memory.columns.items():
        np.testing.assert_array_equal(on_disk.columns[name], values)


def test_without_the_extra_the_remedy_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("fed_node.source.engines"):
            raise ImportError
        return real(name, *rest, **more)

    schema = parse_schema(SCHEMA)
    pq.write_table(typed(50), tmp_path / "rows.parquet")
    monkeypatch.setattr(source_module, "LARGE", 100)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"pip install 'fedsynth\[sources\]'"):
        open_rows(ParquetSource(path=tmp_path / "rows.parquet", engine="duckdb"), schema, tmp_path)
    with pytest.raises(InputError, match=r"pip install 'fedsynth\[sources\]'"):
        open_rows(EngineSource(query="SELECT 1", url_env="X"), schema, tmp_path)
    assert type(open_rows(ParquetSource(path=tmp_path / "rows.parquet"), schema, tmp_path)) is StreamedRows


def test_a_network_trains_on_rows_that_are_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rows join, by the same coins, and a row has the same modes in every batch."""
    plan = plan_of(SMALLEST["ctgan"], parties=2, rows=200)
    pq.write_table(typed(200), tmp_path / "rows.parquet")
    rows = open_rows(ParquetSource(path=tmp_path / "rows.parquet", engine="duckdb"), plan.table, tmp_path)
    at_hand = rows.at_hand()
    assert isinstance(at_hand.columns["age"], np.memmap)
    assert rows.at_hand() is at_hand
    monkeypatch.setattr(encoded, "MOST_BYTES", 0)
    statistics = statistics_inquiry(plan)
    statistics.absorb(_sum_of(statistics, rows))
    family = build(plan)
    family.begin(statistics.result(), seed=1)
    ask = family.ask(0)
    assert ask is not None
    first, again = (family.answer(ask, "party-1", rows, {}, seeded_source(3))[0].arrays for _ in range(2))
    for name, change in first.items():
        np.testing.assert_array_equal(change, again[name])
    held = read_records(ParquetSource(path=tmp_path / "rows.parquet"), plan.table)
    in_memory = family.answer(ask, "party-1", held, {}, seeded_source(3))
    assert {k: v.shape for k, v in in_memory[0].arrays.items()} == {k: v.shape for k, v in first.items()}


def _sum_of(inquiry: Any, rows: Any) -> Sum:
    ask, parties = inquiry.ask(0), ("party-1", "party-2")
    return Sum.of({party: inquiry.answer(ask, party, rows, {}, seeded_source(1))[0] for party in parties})
