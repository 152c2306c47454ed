"""Engines count to the unit what our own encoder counts, whatever the cells are."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fed_node.source import EngineSource, ParquetSource, open_rows, read_records
from fed_node.source.engines.counting import count_histograms, count_tables
from fed_node.source.engines.rows import EngineRows
from fed_node.source.growing import Growing
from synth.encoding.rows import Rows
from synth.plan import parse_schema
from synth.schema import Schema
from tests.fed_node.nasty_tables import AMOUNT, HUNDRED, YEAR, all_pairs, grids, nasty, some_bins
from tests.fed_node.postgres import postgres

EXAMPLES = int(os.environ.get("ENGINE_EXAMPLES", "6"))  # nasty tables; many more in `make fuzz`


def assert_counted_alike(rows: Rows, expected: Rows, schema: Schema, seed: int) -> None:
    """By the engine itself: what it left to us would prove nothing."""
    assert isinstance(rows, EngineRows)
    names, pairs = list(schema.released), all_pairs(schema)
    for cells in grids(schema):
        found = rows.counted(cells, lambda engine, p, c=cells: count_histograms(engine.backend, engine.rows, p, c))
        assert found is not None
        np.testing.assert_array_equal(found, expected.histograms(cells))
        bins = some_bins(cells, seed)
        found = rows.counted(
            cells, lambda engine, p, b=bins: count_tables(engine.backend, engine.rows, p, b, names, pairs)
        )
        assert found is not None
        np.testing.assert_array_equal(found, expected.tables(bins, names, pairs))


@given(nasty(), st.integers(0, 9))
@settings(max_examples=2 * EXAMPLES, suppress_health_check=list(HealthCheck))
def test_duckdb_counts_as_we_do(table_and_schema: tuple[pa.Table, Schema], seed: int) -> None:
    table, schema = table_and_schema
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        pq.write_table(table, path)
        in_memory = read_records(ParquetSource(path=path), schema)
        rows = open_rows(ParquetSource(path=path, engine="duckdb"), schema, Path(folder) / "scratch")
        assert_counted_alike(rows, in_memory, schema, seed)


@pytest.mark.parametrize("rule", [{"missing": True}, {}, {"missing": True, "unfit": "leave-out"}])
@pytest.mark.parametrize("others", [[1.0, 2.0, 50.0], [-40.0, -50.0], [1e9, 2e9]])
def test_no_number_among_numbers_is_seen(tmp_path: Path, rule: dict[str, Any], others: list[float]) -> None:
    """The file's smallest and largest value do not tell of NaN, and DuckDB took them at their word."""
    table = pa.table({"x": pa.array([float("nan"), *others]), "y": pa.array(["a"] * (len(others) + 1))})
    pq.write_table(table, tmp_path / "rows.parquet")
    labels = {"kind": "categorical", "categories": ["a", "b"]}
    schema = parse_schema({"columns": {"x": AMOUNT | rule, "y": labels}})
    rows = open_rows(ParquetSource(path=tmp_path / "rows.parquet", engine="duckdb"), schema, tmp_path)
    assert_counted_alike(rows, read_records(ParquetSource(path=tmp_path / "rows.parquet"), schema), schema, seed=1)


@pytest.fixture(scope="module")
def postgres_url() -> Iterator[str]:
    with postgres() as address:
        yield address


POSTGRES = {"int16": "smallint", "int64": "bigint", "double": "float8", "string": "text", "bool": "boolean"}
POSTGRES |= {"date32[day]": "date", "timestamp[us]": "timestamp", "decimal128(12, 2)": "numeric"}


def fill_postgres(address: str, table: pa.Table) -> None:
    columns = ", ".join(f'"{field.name}" {POSTGRES[str(field.type)]}' for field in table.schema)
    with psycopg.connect(address.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS nasty CASCADE")
        connection.execute(f"CREATE TABLE nasty ({columns})")
        places = ", ".join(["%s"] * table.num_columns)
        if table.num_rows:
            rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
            connection.cursor().executemany(f"INSERT INTO nasty VALUES ({places})", list(rows))


@given(nasty(), st.integers(0, 9))
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
def test_postgresql_counts_as_we_do(postgres_url: str, table_and_schema: tuple[pa.Table, Schema], seed: int) -> None:
    table, schema = table_and_schema
    fill_postgres(postgres_url, table)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "url").write_text(postgres_url)
        source = EngineSource(query="SELECT * FROM nasty;", url_file=Path(folder) / "url")
        rows = open_rows(source, schema, Path(folder) / "scratch")
        assert isinstance(rows, EngineRows)
        assert_counted_alike(rows, rows.gathered(Growing), schema, seed)


FAR = ["'infinity'", "'-infinity'", "'4713-01-01 BC'", "'20000-01-01'", "'2020-05-05'", "NULL"]
LONG = ["'NaN'", "'Infinity'", "1e400", "-1e400", "1e-400", "0", "1.005", "-9", "2.675000000000000000000000001"]


def test_postgresql_fails_on_no_cell(postgres_url: str, tmp_path: Path) -> None:
    """Times that Python cannot hold and numbers that no float64 can: casts of them would end the query."""
    with psycopg.connect(postgres_url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS far CASCADE")
        connection.execute("CREATE TABLE far (day date, moment timestamp, amount numeric, whole numeric)")
        for number, long in enumerate(LONG):
            day = FAR[number % len(FAR)]
            connection.execute(f"INSERT INTO far VALUES ({day}, {day}, {long}, {long})")
    (tmp_path / "url").write_text(postgres_url)
    source = EngineSource(query="SELECT * FROM far", url_file=tmp_path / "url")
    for rule in ({"missing": True}, {"missing": True, "unfit": "leave-out"}, {"missing": True, "unfit": "nearest"}):
        days, amount = YEAR | rule, AMOUNT | rule
        columns = {"day": days, "moment": days, "amount": amount, "whole": HUNDRED | rule}
        schema = parse_schema({"columns": columns, "missing_values": ["-9"]})
        rows = open_rows(source, schema, tmp_path)
        assert isinstance(rows, EngineRows)
        assert_counted_alike(rows, rows.gathered(Growing), schema, seed=1)


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    pyspark = pytest.importorskip("pyspark.sql", reason="pyspark (455 MB) is not installed")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    builder = pyspark.SparkSession.builder.master("local[1]").config("spark.ui.enabled", False)
    session = builder.config("spark.sql.shuffle.partitions", 1).getOrCreate()
    yield session
    session.stop()


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")  # of Spark, about pandas
@given(nasty(), st.integers(0, 9))
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
def test_rows_of_spark_are_ours(spark: Any, table_and_schema: tuple[pa.Table, Schema], seed: int) -> None:
    table, schema = table_and_schema
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        file = Path(folder) / "rows.parquet"
        pq.write_table(table, file)
        patch.setenv("SPARK_URL", "pyspark://")
        source = EngineSource(query=f"SELECT * FROM parquet.`{file}`", url_env="SPARK_URL")
        rows = open_rows(source, schema, Path(folder) / "scratch")
        expected = read_records(ParquetSource(path=file), schema)
        for cells in grids(schema):
            np.testing.assert_array_equal(rows.histograms(cells), expected.histograms(cells))
