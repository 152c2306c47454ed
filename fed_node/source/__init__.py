"""A party's rows, from wherever it keeps them, checked and made compact piece by piece.

Only released columns are taken, and each piece becomes numbers before the next is read: a table of text that would not
fit into memory still loads. Whatever does not fit is told by column and row number, to the party alone: `check_data` is
for the administrator, who decides; `read_records`, beside a release, follows the schema's rules and refuses no row.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from fed_node.source.csv_file import CsvFile
from fed_node.source.growing import Growing
from fed_node.source.places import CsvSource, EngineSource, ParquetSource, Source, SqlSource, source_of
from fed_node.source.reading import Reader
from fed_node.source.report import (
    DataReport,
    Findings,
    require_fit,
    too_few_rows,
    undecodable_cells,
)
from fed_node.source.streamed import StreamedRows
from synth.encoding.records import Codec, Problem, Records
from synth.encoding.rows import Rows
from synth.errors import DataError, InputError
from synth.schema import Schema

if TYPE_CHECKING:
    from fed_node.source.parquet_file import ParquetFile

__all__ = [
    "CsvSource",
    "DataReport",
    "EngineSource",
    "ParquetSource",
    "Source",
    "SqlSource",
    "check_data",
    "engine_source",
    "keyed_pieces",
    "open_rows",
    "opened_reader",
    "read_records",
    "read_records_from",
    "read_table",
    "read_table_as_text",
    "source_of",
    "table_pieces",
    "text_pieces",
]

NO_HEADER = Problem(  # its "names" are not shown: they are probably the cells of a row
    "(first line)",
    "names none of the declared columns",
    "is there a header line? If so, check the file's separator",
)
NO_KEY = "is missing from the file", "add it: it says whose rows they are, or when, and never leaves"
LARGE = 1 << 30  # bytes of rows in memory
LARGE_TEXT = 1 << 29  # bytes of a CSV file; in memory its rows take about as much, compressed ones several times that
BYTES_A_CELL = 8
NO_ENGINES = "Ibis and DuckDB, which count rows where they live, are not installed: pip install 'fedsynth[sources]'"
log = logging.getLogger("fed_node")


def read_records(source: Source, schema: Schema) -> Records:
    """All rows as numbers, by the schema's rules where a cell does not fit: the one way rows get into a release.

    It refuses nothing that a single row could bring about; what the rules changed is counted in the party's own log.
    """
    require_fit(_header_report(Codec(schema), _opened(source, schema)))
    return StreamedRows(schema, lambda: _opened(source, schema), Path()).gathered(Growing)


def open_rows(source: Source, schema: Schema, scratch: Path) -> Rows:
    """The rows for a release, in memory if they fit there, else where they are; `scratch` is a folder for the rest."""
    require_fit(_header_report(Codec(schema), _opened(source, schema)))
    scratch.mkdir(mode=0o700, exist_ok=True)
    streamed = StreamedRows(schema, lambda: _opened(source, schema), scratch)
    if (counted := engine_source(source, schema)) is not None:
        return _counted(counted, streamed)
    if isinstance(source, CsvSource) and source.path.stat().st_size > LARGE_TEXT:
        return streamed.at_hand()
    return streamed.gathered(Growing)


def engine_source(source: Source, schema: Schema) -> ParquetSource | EngineSource | None:
    """The source, if an engine counts its rows: one that it names, or DuckDB if there are too many for memory."""
    match source:
        case EngineSource() | ParquetSource(engine="duckdb"):
            return source
        case ParquetSource(engine=None) if _is_large(source, schema):
            return source
    return None


def _is_large(source: ParquetSource, schema: Schema) -> bool:
    return _parquet_file(source).rows * len(schema.released) * BYTES_A_CELL > LARGE


def _counted(source: ParquetSource | EngineSource, streamed: StreamedRows) -> Rows:
    try:
        from fed_node.source.engines.rows import EngineRows
    except ImportError:
        if isinstance(source, EngineSource) or source.engine is not None:
            raise InputError(NO_ENGINES) from None
        log.warning("%s", NO_ENGINES)
        return streamed
    return EngineRows(streamed.codec.schema, streamed.read, streamed.scratch, source)


def opened_reader(source: Source, schema: Schema) -> Reader:
    """The source, if its header is the schema's."""
    reader = _opened(source, schema)
    require_fit(_header_report(Codec(schema), reader))
    return reader


def read_records_from(path: Path, schema: Schema) -> Records:
    return read_records(source_of(path), schema)


def read_table(source: Source, schema: Schema) -> pd.DataFrame:
    """The released columns as the source holds them, text or typed, not checked cell by cell."""
    return pd.concat(table_pieces(source, schema), ignore_index=True)


def keyed_pieces(source: Source, schema: Schema, key: str) -> Iterator[pd.DataFrame]:
    """The released columns and the key column, a piece at a time: for rows that find each other across parties."""
    reader = _opened(source, schema)
    require_fit(_header_report(Codec(schema), reader))
    if key not in reader.header():
        what, remedy = "is missing from the file", "add it: without it nobody knows whose row is whose"
        require_fit(DataReport(reader.place, 0, 0, (Problem(key, what, remedy),)))
    yield from reader.frames([key, *schema.released])


def table_pieces(source: Source, schema: Schema) -> Iterator[pd.DataFrame]:
    """The same, a piece at a time, for tables of which nobody wants all rows in memory."""
    yield from _pieces(opened_reader(source, schema), list(schema.released))


def read_table_as_text(path: Path) -> pd.DataFrame:
    """A file without a schema, every column, every cell as text: for drafting one."""
    return pd.concat(text_pieces(path), ignore_index=True)


def text_pieces(path: Path) -> Iterator[pd.DataFrame]:
    """The same, a piece at a time."""
    source = source_of(path)
    reader: Reader = CsvFile(source) if isinstance(source, CsvSource) else _parquet_file(source)
    header = reader.header()
    if repeated := [place for place, name in enumerate(header, start=1) if header.count(name) > 1]:
        raise DataError(  # by number: without a header line the names are somebody's cells
            f"{reader.place}: in the header, columns {', '.join(map(str, repeated))} do not have names of their own; "
            "is there a header line? If so, rename them."
        )
    if isinstance(source, CsvSource) and not any(map(_is_name, header)):
        raise DataError(
            f"{reader.place}: its first line has no names, only numbers or dates. Is there a header line? Add one with "
            "the names of the columns."
        )
    for piece in _pieces(reader, header):
        yield piece.astype("str").where(piece.notna(), "")


def _is_name(cell: str) -> bool:
    """Whether a cell could be a column's name: not a number, a date or nothing."""
    return not re.fullmatch(r"[\s\d.,:;/+eE-]*", cell)


def check_data(source: Source, schema: Schema) -> DataReport:
    """Everything that does not fit, by column and row number, and what the schema's rules make of it."""
    codec, reader = Codec(schema), _opened(source, schema)
    header = _header_report(codec, reader)
    if not header.fits:
        return header
    used, findings = 0, Findings(reader)
    for frame in reader.frames(list(schema.released)):
        records, problems = codec.fit(frame)
        findings.add([*undecodable_cells(frame), *problems], len(frame))
        used += len(records)
    rows = findings.rows + len(reader.malformed)
    return DataReport(reader.place, rows, rows - used, (*findings.problems(), *too_few_rows(used)))


def _opened(source: Source, schema: Schema) -> Reader:
    match source:
        case CsvSource():
            return CsvFile(source, schema.columns)
        case ParquetSource():
            return _parquet_file(source)
        case SqlSource():
            return _query_result(source)
        case EngineSource():
            return _engine_reader(source)


def _parquet_file(source: ParquetSource) -> ParquetFile:
    """Loaded here, since tables of text need no Arrow."""
    from fed_node.source.parquet_file import ParquetFile

    return ParquetFile(source)


def _query_result(source: SqlSource) -> Reader:
    try:
        from fed_node.source.database import QueryResult
    except ImportError:
        raise InputError("SQLAlchemy, which reads databases, is not installed: pip install 'fedsynth[node]'") from None
    return QueryResult(source)


def _engine_reader(source: EngineSource) -> Reader:
    try:
        from fed_node.source.engines.reader import EngineReader
    except ImportError:
        raise InputError(NO_ENGINES) from None
    return EngineReader(source)


def _header_report(codec: Codec, reader: Reader) -> DataReport:
    header = reader.header()
    if isinstance(reader, CsvFile) and not set(header) & set(codec.schema.columns):
        return DataReport(reader.place, 0, 0, (NO_HEADER,))
    keys = [Problem(name, *NO_KEY) for name in codec.schema.keys if name not in header]
    return DataReport(reader.place, 0, 0, (*keys, *codec.problems_of_header(header)))


def _pieces(reader: Reader, columns: list[str]) -> Iterator[pd.DataFrame]:
    """Every piece that has rows, of a table that nothing is wrong with but, perhaps, its cells: for reading at home.

    What only the end can tell is told there: malformed rows, too few rows.
    """
    findings = Findings(reader)
    for frame in reader.frames(columns):
        if len(frame):
            findings.add(undecodable_cells(frame), len(frame))
            yield frame
    problems = [*findings.problems(), *too_few_rows(findings.rows)]
    require_fit(DataReport(reader.place, findings.rows, 0, tuple(replace(each, outcome="") for each in problems)))
