"""Rows out of an engine, piece by piece: for what cannot be counted there, and for looking at them at home."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import ibis
import pandas as pd

from fed_node.source.arrow_cells import frame_of
from fed_node.source.database import QueryResult
from fed_node.source.engines.forms import Form
from fed_node.source.engines.moments import far_away
from fed_node.source.engines.opening import EngineFailed, Opened, opened
from fed_node.source.places import EngineSource, SqlSource
from fed_node.source.reading import UNDECODABLE
from synth.errors import InputError

ROWS_AT_ONCE = 1 << 17


class EngineReader:
    """A `Reader` (see `reading`) of an engine's query."""

    def __init__(self, source: EngineSource) -> None:
        self.source, self.scratch = source, Path(tempfile.gettempdir())
        self.place = "the query's result"
        self.malformed: list[int] = []

    def header(self) -> list[str]:
        try:
            with opened(self.source, self.scratch) as engine:
                return list(engine.rows.columns)
        except EngineFailed as failed:
            raise self._refused(failed) from None

    def frames(self, columns: list[str]) -> Iterator[pd.DataFrame]:
        if self.source.url().startswith("postgres"):  # its driver fails on single cells; that reader forgives them
            yield from QueryResult(self._as_sql()).frames(columns)
            return
        try:
            with opened(self.source, self.scratch) as engine:
                yield from _frames(engine, columns)
        except EngineFailed as failed:
            raise self._refused(failed) from None

    def _as_sql(self) -> SqlSource:
        return SqlSource(query=self.source.query, url_file=self.source.url_file, url_env=self.source.url_env)

    def _refused(self, failed: EngineFailed) -> InputError:
        return InputError(
            f"the engine refused the connection or the query ({failed}). Check the URL in "
            f"{self.source.url_env or self.source.url_file} and try the query there; the engine's log says more."
        )


def _frames(engine: Opened, columns: list[str]) -> Iterator[pd.DataFrame]:
    match engine.backend.name:
        case "duckdb":
            query = engine.backend.compile(engine.rows.select(*columns))
            for batch in engine.backend.con.sql(query).to_arrow_reader(ROWS_AT_ONCE):
                yield frame_of(batch)
        case "pyspark":
            cells = {name: _holdable(engine.rows[name], engine.forms[name]) for name in columns}
            lines = engine.backend.raw_sql(engine.backend.compile(engine.rows.select(**cells))).toLocalIterator()
            while piece := list(islice(lines, ROWS_AT_ONCE)):
                yield pd.DataFrame([tuple(line) for line in piece], columns=columns, dtype=object)
        case _:
            for batch in engine.backend.to_pyarrow_batches(engine.rows.select(*columns), chunk_size=ROWS_AT_ONCE):
                yield frame_of(batch)


def _holdable(cell: Any, form: Form | None) -> Any:
    """What Python can hold of a cell of Spark's: no day beyond year 9999, and of a moment in a zone that it is one."""
    if form is Form.ZONED:
        return ibis.ifelse(cell.isnull(), ibis.null("string"), ibis.literal(UNDECODABLE))
    return ibis.ifelse(far_away(cell, form), ibis.null(), cell) if form in (Form.DAY, Form.MOMENT) else cell
