"""Rows from a query, streamed. The columns are chosen in the database, so identifiers do not even leave it.

A database's own messages may quote cells, and its URL holds a password: neither is repeated in ours. Cells stay the
objects that the driver made of them: types that pandas found would depend on the other rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pandas as pd
from sqlalchemy import Connection, column, create_engine, event, false, literal_column, select, text
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from fed_node.source.places import SqlSource
from fed_node.source.reading import UNDECODABLE
from synth.errors import InputError

ROWS_AT_ONCE = 50_000


class QueryResult:
    def __init__(self, source: SqlSource) -> None:
        self.source = source
        self.place = "the query's result"
        self.malformed: list[int] = []
        self._query = text(source.query.strip().rstrip(";"))
        try:
            self._engine = create_engine(source.url(), hide_parameters=True)
        except (ArgumentError, NoSuchModuleError, ImportError):
            raise InputError(
                f"the database's URL in {source.url_env or source.url_file} is not one that SQLAlchemy understands, or "
                "its driver is not installed; write it as 'postgresql+psycopg://user:password@host/database'."
            ) from None
        event.listen(self._engine, "connect", _forgive_cells)

    def header(self) -> list[str]:
        rows = self._query.columns().subquery("rows")
        with self._connected() as connection:
            return list(connection.execute(select(literal_column("*")).select_from(rows).where(false())).keys())

    def frames(self, columns: list[str]) -> Iterator[pd.DataFrame]:
        rows = self._query.columns(*(column(name) for name in columns)).subquery("rows")
        with self._connected() as connection:
            result = connection.execution_options(stream_results=True, yield_per=ROWS_AT_ONCE).execute(select(rows))
            for part in result.partitions():
                yield pd.DataFrame([tuple(row) for row in part], columns=columns, dtype=object)

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        try:
            with self._engine.connect() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise InputError(
                f"the database refused the connection or the query ({type(error).__name__}). Check the URL in "
                f"{self.source.url_env or self.source.url_file} and try the query there; the database's log says more."
            ) from None
        finally:
            self._engine.dispose()


def _forgive_cells(connection: Any, _record: object) -> None:
    """One cell that the driver cannot make an object of (an infinite date, bytes that are no text) must not end the
    reading: it becomes a text that fits no column."""
    if hasattr(connection, "text_factory"):  # sqlite3
        connection.text_factory = lambda cell: cell.decode("utf-8", errors="replace")
    elif hasattr(connection, "adapters"):  # psycopg
        _forgive_loading(connection.adapters)


def _forgive_loading(adapters: Any) -> None:
    import psycopg
    from psycopg.abc import Buffer, Loader

    def forgiving(strict: type[Loader]) -> type[Loader]:
        class Forgiving(psycopg.adapt.Loader):
            format = strict.format

            def __init__(self, oid: int, context: Any = None) -> None:
                super().__init__(oid, context)
                self._strict = strict(oid, context)

            def load(self, data: Buffer) -> Any:
                try:
                    return self._strict.load(data)
                except (psycopg.DataError, ValueError, RecursionError):  # the last two: what JSON may hold
                    return UNDECODABLE

        return Forgiving

    for name in ("date", "time", "timestamp", "timestamptz", "timetz", "interval", "json", "jsonb"):
        for form in psycopg.pq.Format:
            if (strict := adapters.get_loader(adapters.types[name].oid, form)) is not None:
                adapters.register_loader(name, forgiving(strict))
