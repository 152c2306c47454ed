"""Rows from a query, streamed. The columns are chosen in the database, so identifiers do not even leave it.

A database's own messages may quote cells, and its URL holds a password: neither is repeated in ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pandas as pd
from sqlalchemy import Connection, column, create_engine, false, literal_column, select, text
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from fed_node.source.places import SqlSource
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

    def header(self) -> list[str]:
        rows = self._query.columns().subquery("rows")
        with self._connected() as connection:
            return list(connection.execute(select(literal_column("*")).select_from(rows).where(false())).keys())

    def frames(self, columns: list[str]) -> Iterator[pd.DataFrame]:
        rows = self._query.columns(*(column(name) for name in columns)).subquery("rows")
        with self._connected() as connection:
            result = connection.execution_options(stream_results=True, yield_per=ROWS_AT_ONCE).execute(select(rows))
            for part in result.partitions():
                yield pd.DataFrame.from_records([tuple(row) for row in part], columns=columns, coerce_float=True)

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
