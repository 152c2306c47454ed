"""An engine opened on a party's table. Its own messages may quote cells or hold a password: none is repeated."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ibis
import pyarrow
from ibis.common.exceptions import IbisError
from ibis.formats.pyarrow import PyArrowSchema

from fed_node.source.engines.expressions import Expression
from fed_node.source.engines.forms import Form, form_of
from fed_node.source.parquet_file import ParquetFile
from fed_node.source.places import EngineSource, ParquetSource
from synth.errors import InputError

VIEW = "party_rows"
DUCKDB_MEMORY = "1GB"  # what is more goes to its temporary folder
log = logging.getLogger("fed_node")


@dataclass(frozen=True, eq=False)
class Opened:
    backend: Any
    rows: Expression
    forms: dict[str, Form | None]


class EngineFailed(Exception):
    """The engine could not open the table or carry out a query; whoever asked reads the rows himself."""


@contextmanager
def opened(source: ParquetSource | EngineSource, scratch: Path) -> Iterator[Opened]:
    """The engine, for a query or two; `EngineFailed` for whatever goes wrong inside."""
    failures = _failures()
    try:
        engine = _parquet(source, scratch) if isinstance(source, ParquetSource) else _by_url(source, scratch)
        try:
            yield engine
        finally:
            if engine.backend.name != "pyspark":  # whose session is the process's own
                engine.backend.disconnect()
    except failures as error:
        log.debug("the engine failed", exc_info=True)
        raise EngineFailed(type(error).__name__) from None


def _parquet(source: ParquetSource, scratch: Path) -> Opened:
    engine = _duckdb(":memory:", scratch)
    rows = engine.read_parquet(str(source.path), table_name=VIEW)
    told = _forms(PyArrowSchema.to_ibis(_flat(ParquetFile(source).fields)))
    found = _forms(rows.schema())
    # Where the file's own notes make something else of a column (durations are whole numbers to DuckDB), it is ours.
    return Opened(engine, rows, {name: form if told.get(name) == form else None for name, form in found.items()})


def _by_url(source: EngineSource, scratch: Path) -> Opened:
    url, query = source.url(), source.query.strip().rstrip(";")
    if url.startswith("duckdb://"):
        engine = _duckdb(url.removeprefix("duckdb://"), scratch, read_only=True)
    else:
        engine = _connected(source, url)
    rows = viewed(engine, query, VIEW)
    return Opened(engine, rows, _forms(rows.schema()))


def viewed(engine: Any, query: str, name: str) -> Expression:
    """The query's rows. A view that only this session sees: Ibis 12 stumbles over bare queries of newer drivers."""
    view = f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {query}"
    match engine.name:
        case "duckdb" | "postgres":
            engine.con.execute(view)
        case "pyspark":
            engine.raw_sql(view)
        case _:
            return engine.sql(query)
    return engine.table(name)


def _connected(source: EngineSource, url: str) -> Any:
    scheme, _, rest = url.partition("://")
    try:
        return ibis.connect(f"{scheme.partition('+')[0]}://{rest}")  # without SQLAlchemy's name of a driver
    except (ImportError, ValueError, AttributeError):
        raise InputError(
            f"the URL in {source.url_env or source.url_file} names no engine that Ibis knows, or its driver is not "
            "installed (for example: pip install 'ibis-framework[postgres]==12.0.0')."
        ) from None


def _duckdb(database: str, scratch: Path, read_only: bool = False) -> Any:
    engine = ibis.duckdb.connect(database, read_only=read_only, temp_directory=str(scratch))
    engine.con.execute(f"SET memory_limit = '{DUCKDB_MEMORY}'")
    # A Parquet file's smallest and largest value say nothing of NaN, but DuckDB concludes from them that there is none.
    engine.con.execute("SET disabled_optimizers = 'statistics_propagation,filter_pushdown'")
    for setting in ("autoinstall_known_extensions", "autoload_known_extensions", "preserve_insertion_order"):
        engine.con.execute(f"SET {setting} = false")
    return engine


def _flat(fields: Any) -> Any:
    """Without what Ibis has no type for."""
    known = [field for field in fields if not pyarrow.types.is_nested(field.type)]
    return pyarrow.schema([_plain_field(field) for field in known])


def _plain_field(field: Any) -> Any:
    if pyarrow.types.is_dictionary(field.type):
        return pyarrow.field(field.name, field.type.value_type)
    return field


def _forms(schema: Any) -> dict[str, Form | None]:
    return {name: form_of(dtype) for name, dtype in schema.items()}


def _failures() -> tuple[type[Exception], ...]:
    """What engines raise, of those that are installed."""
    found: list[type[Exception]] = [IbisError, pyarrow.ArrowException, OSError]
    for module, name in (("duckdb", "Error"), ("psycopg", "Error"), ("pyspark.errors", "PySparkException")):
        try:
            found.append(getattr(__import__(module, fromlist=[name]), name))
        except ImportError:
            continue
    return tuple(found)
