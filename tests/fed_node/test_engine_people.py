"""Engines choose and count the same rows of a person as we do, given the same coin."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from duckdb import connect
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fed_node.source import EngineSource, ParquetSource, SqlSource
from fed_node.source.engines.counting import count_histograms, count_tables
from fed_node.source.engines.people import EnginePeople
from fed_node.source.units import open_units
from synth.encoding.rows import Rows
from synth.errors import InputError
from synth.grid import grid_of
from synth.plan import Plan, parse_plan, parse_schema
from synth.privacy.coin import Coin
from synth.privacy.noise import seeded_source
from synth.schema import Schema
from tests.fed_node.nasty_tables import WIDE, nasty, some_bins
from tests.fed_node.postgres import postgres
from tests.fed_node.test_engines import EXAMPLES, fill_postgres

NAMES = ["ann", "Ann", "ann ", "bøb", "b'b", "7", "", "NA", None]
NUMBERS = [0, 7, -9, 2**53 + 1, -(2**63), None]


@st.composite
def people(draw: st.DrawFn) -> tuple[pa.Table, Plan]:
    """A nasty table of which some people have many rows, and a plan that uses one or a few of each."""
    table, schema = draw(nasty(leave_out=("wide", "real", "decimal")))  # thousands of cells: below
    dtype, pool = draw(st.sampled_from([(pa.string(), NAMES), (pa.int64(), NUMBERS)]))
    who = draw(st.lists(st.sampled_from(pool), min_size=table.num_rows, max_size=table.num_rows))
    return table.append_column("who", pa.array(who, type=dtype)), plan_of(schema, draw(st.sampled_from([1, 2, 4])))


def plan_of(schema: Schema, rows_per_subject: int) -> Plan:
    written = schema.model_dump(mode="json", by_alias=True, exclude_unset=True)
    written["columns"] = {"who": {"kind": "identifier"}} | written["columns"]
    content: dict[str, Any] = {
        "name": "people",
        "parties": [{"name": "north", "rows": 200}],
        "schema": written | {"subject": "who"},
        "statistics": {"bins": 16},
        "synthesizer": {"name": "marginals", "bins": 4},
        "privacy": {"epsilon": 2.0, "delta": 1e-5, "noise": "local", "rows_per_subject": rows_per_subject},
        "secure_sum": {"statistics": "plain", "updates": "plain", "colluders": 0},
    }
    return parse_plan(content)


def assert_counted_alike(rows: Rows, expected: Rows, plan: Plan, seed: int) -> None:
    """By the engine itself: what it left to us would prove nothing."""
    assert isinstance(rows, EnginePeople)
    names = list(plan.modelled.released)
    pairs = [*combinations(range(len(names)), 2), *((place,) for place in range(len(names)))]
    cells = grid_of(plan)
    found = rows.counted(cells, lambda engine, p: count_histograms(engine.backend, engine.rows, p, cells))
    assert found is not None
    np.testing.assert_array_equal(found, expected.histograms(cells))
    bins = some_bins(cells, seed)
    found = rows.counted(bins.cells, lambda engine, p: count_tables(engine.backend, engine.rows, p, bins, names, pairs))
    assert found is not None
    np.testing.assert_array_equal(found, expected.tables(bins, names, pairs))


@given(people(), st.integers(0, 9))
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
def test_duckdb_counts_the_rows_that_we_would(table_and_plan: tuple[pa.Table, Plan], seed: int) -> None:
    table, plan = table_and_plan
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pq.write_table(table, folder / "rows.parquet")
        memory, duckdb = (ParquetSource(path=folder / "rows.parquet", engine=each) for each in ("memory", "duckdb"))
        rows, expected = (open_units(each, plan, folder, Coin(seeded_source(seed))) for each in (duckdb, memory))
        assert_counted_alike(rows, expected, plan, seed)
        np.testing.assert_array_equal(rows.histograms(grid_of(plan)), expected.histograms(grid_of(plan)))


@pytest.fixture(scope="module")
def postgres_url() -> Iterator[str]:
    with postgres() as address:
        yield address


@given(people(), st.integers(0, 9))
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
def test_postgresql_counts_the_rows_that_we_would(
    postgres_url: str, table_and_plan: tuple[pa.Table, Plan], seed: int
) -> None:
    table, plan = table_and_plan
    fill_postgres(postgres_url, table)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "url").write_text(postgres_url)
        engine = EngineSource(query="SELECT * FROM nasty", url_file=folder / "url")
        memory = SqlSource(query="SELECT * FROM nasty ORDER BY random()", url_file=folder / "url")
        rows, expected = (open_units(each, plan, folder, Coin(seeded_source(seed))) for each in (engine, memory))
        assert_counted_alike(rows, expected, plan, seed)


def labelled(**labels: list[str]) -> Schema:
    columns = {name: {"kind": "categorical", "categories": known} for name, known in labels.items()}
    return parse_schema({"columns": columns})


def test_amounts_of_thousands_of_cells(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    who, amount = [f"p{n}" for n in rng.integers(0, 5, 40)], np.round(rng.lognormal(3, 3, 40), 2)
    pq.write_table(pa.table({"who": who, "paid": amount, "sick": rng.random(40) < 0.5}), tmp_path / "rows.parquet")
    plan = plan_of(parse_schema({"columns": {"paid": WIDE, "sick": {"kind": "boolean"}}}), 2)
    sources = [ParquetSource(path=tmp_path / "rows.parquet", engine=each) for each in ("duckdb", "memory")]
    rows, expected = (open_units(each, plan, tmp_path, Coin(seeded_source(1))) for each in sources)
    assert_counted_alike(rows, expected, plan, 1)


def test_owners_that_only_we_can_read_are_counted_here(tmp_path: Path) -> None:
    """Reals: '7' and '7.0' are one person to us, and an engine would write them otherwise."""
    columns = {"who": [7.0, 7.0, 8.5, None], "sex": ["f", "m", "f", "m"], "ward": ["a", "b", "a", "b"]}
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    plan = plan_of(labelled(sex=["f", "m"], ward=["a", "b"]), 1)
    sources = [ParquetSource(path=tmp_path / "rows.parquet", engine=each) for each in ("duckdb", "memory")]
    rows, expected = (open_units(each, plan, tmp_path, Coin(seeded_source(1))) for each in sources)
    grid = grid_of(plan)
    assert isinstance(rows, EnginePeople)
    assert rows.counted(grid, lambda *_: pytest.fail("counted by the engine")) is None
    np.testing.assert_array_equal(rows.histograms(grid), expected.histograms(grid))
    assert expected.histograms(grid)[:2].sum() == 2


@pytest.mark.parametrize("rows_per_subject", [1, 2])
def test_two_spellings_are_two_people_whatever_the_engines_collation(tmp_path: Path, rows_per_subject: int) -> None:
    """Grouped by a column that knows no case, one of them decided which rows of the other were used: two people moved
    where one is added, and twice as far."""
    plan = plan_of(labelled(sex=["f", "m"], ward=["a", "b"]), rows_per_subject)
    with closing(connect(tmp_path / "rows.duckdb")) as database:
        database.execute("CREATE TABLE rows (who VARCHAR COLLATE NOCASE, sex VARCHAR, ward VARCHAR)")
        database.execute(
            "INSERT INTO rows VALUES ('Ann', 'f', 'a'), ('ann', 'm', 'b'), ('ANN', 'm', 'a'), ('bob', 'm', 'a')"
        )
    (tmp_path / "url").write_text(f"duckdb://{tmp_path}/rows.duckdb")
    rows = open_units(
        EngineSource(query="SELECT * FROM rows", url_file=tmp_path / "url"), plan, tmp_path, Coin(seeded_source(1))
    )
    grid = grid_of(plan)
    assert isinstance(rows, EnginePeople)
    found = rows.counted(grid, lambda engine, p: count_histograms(engine.backend, engine.rows, p, grid))
    assert found is not None
    first = grid.slices[next(name for name in grid.slices if name.startswith("sex"))]
    assert found[first].sum() == 4


def test_the_order_of_rows_decides_nothing(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    columns = {"who": [f"p{n}" for n in rng.integers(0, 9, 200)], "sex": rng.choice(["f", "m"], 200)}
    table = pa.table(columns | {"ward": rng.choice(["a", "b", "c"], 200)})
    plan, found = plan_of(labelled(sex=["f", "m"], ward=["a", "b", "c"]), 2), []
    for number, order in enumerate((np.arange(200), rng.permutation(200))):
        pq.write_table(table.take(order), tmp_path / f"{number}.parquet")
        rows = open_units(ParquetSource(path=tmp_path / f"{number}.parquet"), plan, tmp_path, Coin(seeded_source(1)))
        found.append(rows.histograms(grid_of(plan)))
    np.testing.assert_array_equal(*found)


def test_sequences_are_refused_in_a_sentence(tmp_path: Path) -> None:
    columns = {"who": ["a"], "month": [1], "sex": ["f"], "ward": ["a"]}
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    content = plan_of(labelled(sex=["f", "m"], ward=["a", "b"]), 1).model_dump(
        mode="json", by_alias=True, exclude_unset=True
    )
    content["privacy"].pop("rows_per_subject", None)
    content["schema"] = {
        "columns": {
            "who": {"kind": "identifier"},
            "month": {"kind": "integer", "min": 1, "max": 9},
            "sex": {"kind": "categorical", "categories": ["f", "m"]},
        },
        "sequence": {"entity": "who", "time": "month", "length": 2},
    }
    counted = ParquetSource(path=tmp_path / "rows.parquet", engine="duckdb")
    with pytest.raises(InputError, match="puts the rows of every window together"):
        open_units(counted, parse_plan(content), tmp_path, Coin(seeded_source(1)))
