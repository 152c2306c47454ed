"""A party's rows, from wherever it keeps them, checked and made compact piece by piece.

Only released columns are taken, and each piece becomes numbers before the next is read: a table of text that would not
fit into memory still loads. Whatever does not fit is told by column and row number, to the party alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from fed_node.source.csv_file import CsvFile
from fed_node.source.database import QueryResult
from fed_node.source.growing import Growing
from fed_node.source.parquet_file import ParquetFile
from fed_node.source.places import CsvSource, ParquetSource, Source, SqlSource, source_of
from fed_node.source.reading import Reader
from synth.encoding.records import SHOWN_ROWS, Codec, Problem, Records
from synth.errors import DataError
from synth.schema import Schema

__all__ = [
    "CsvSource",
    "DataReport",
    "ParquetSource",
    "Source",
    "SqlSource",
    "check_data",
    "read_records",
    "read_records_from",
    "read_table",
    "read_table_as_text",
    "source_of",
    "table_pieces",
    "text_pieces",
]

FEWEST_ROWS = 2  # of one row every statistic is that row
NO_HEADER = Problem(  # its "names" are not shown: they are probably the cells of a row
    "(first line)",
    "names none of the declared columns",
    "is there a header line? If so, check the file's separator",
)


@dataclass(frozen=True)
class DataReport:
    """How a source fits a schema: for the party's eyes only."""

    place: str
    rows: int
    problems: tuple[Problem, ...]

    @property
    def fits(self) -> bool:
        return not self.problems

    def __str__(self) -> str:
        if self.fits:
            return f"{self.place} fits the schema: {self.rows} rows."
        return f"{self.place} does not fit the schema (the header is row 1): {'; '.join(map(str, self.problems))}."


def read_records(source: Source, schema: Schema) -> Records:
    """All rows as checked numbers."""
    codec, reader = Codec(schema), _opened(source, schema)
    _require(_header_report(codec, reader))
    columns = {name: Growing() for name in schema.released}
    try:
        for frame in reader.frames(list(schema.released)):
            for name, values in codec.encode(frame).columns.items():
                columns[name].extend(values)
    except DataError:
        _require(check_data(source, schema))
        raise
    if reader.malformed:
        _require(check_data(source, schema))
    records = Records({name: column.values for name, column in columns.items()})
    _require_rows(reader, len(records))
    return records


def read_records_from(path: Path, schema: Schema) -> Records:
    return read_records(source_of(path), schema)


def read_table(source: Source, schema: Schema) -> pd.DataFrame:
    """The released columns as the source holds them, text or typed, not checked cell by cell."""
    return pd.concat(table_pieces(source, schema), ignore_index=True)


def table_pieces(source: Source, schema: Schema) -> Iterator[pd.DataFrame]:
    """The same, a piece at a time, for tables of which nobody wants all rows in memory."""
    reader = _opened(source, schema)
    _require(_header_report(Codec(schema), reader))
    yield from _pieces(reader, list(schema.released))


def read_table_as_text(path: Path) -> pd.DataFrame:
    """A file without a schema, every column, every cell as text: for drafting one."""
    return pd.concat(text_pieces(path), ignore_index=True)


def text_pieces(path: Path) -> Iterator[pd.DataFrame]:
    """The same, a piece at a time."""
    source = source_of(path)
    reader: Reader = CsvFile(source) if isinstance(source, CsvSource) else ParquetFile(source)
    header = reader.header()
    if repeated := [place for place, name in enumerate(header, start=1) if header.count(name) > 1]:
        raise DataError(  # by number: without a header line the names are somebody's cells
            f"{reader.place}: in the header, columns {', '.join(map(str, repeated))} do not have names of their own; "
            "is there a header line? If so, rename them."
        )
    for piece in _pieces(reader, header):
        yield piece.astype("str").where(piece.notna(), "")


def check_data(source: Source, schema: Schema) -> DataReport:
    """Everything that keeps the rows from being used, by column and row number."""
    codec, reader = Codec(schema), _opened(source, schema)
    header = _header_report(codec, reader)
    if not header.fits:
        return header
    rows = 0
    found: dict[tuple[str, str], Problem] = {}
    for frame in reader.frames(list(schema.released)):
        for problem in codec.problems(frame):
            numbered = replace(problem, rows=tuple(_in_file(row + rows, reader.malformed) for row in problem.rows))
            before = found.get((problem.column, problem.what))
            found[problem.column, problem.what] = _joined(before, numbered) if before else numbered
        rows += len(frame)
    return DataReport(reader.place, rows, (*_malformed(reader), *found.values()))


def _opened(source: Source, schema: Schema) -> Reader:
    match source:
        case CsvSource():
            return CsvFile(source, schema.columns)
        case ParquetSource():
            return ParquetFile(source)
        case SqlSource():
            return QueryResult(source)


def _header_report(codec: Codec, reader: Reader) -> DataReport:
    header = reader.header()
    if isinstance(reader, CsvFile) and not set(header) & set(codec.schema.columns):
        return DataReport(reader.place, 0, (NO_HEADER,))
    return DataReport(reader.place, 0, tuple(codec.problems(pd.DataFrame(columns=header, dtype="str"))))


def _require(report: DataReport) -> None:
    if not report.fits:
        raise DataError(str(report))


def _require_rows(reader: Reader, rows: int) -> None:
    if rows < FEWEST_ROWS:
        raise DataError(
            f"{reader.place} has {rows or 'no'} row(s) below its header; at least {FEWEST_ROWS} are needed."
        )


def _pieces(reader: Reader, columns: list[str]) -> Iterator[pd.DataFrame]:
    """Every piece that has rows. What only the end can tell is told there: malformed rows, too few rows."""
    rows = 0
    for frame in reader.frames(columns):
        if len(frame):
            rows += len(frame)
            yield frame
    _require(DataReport(reader.place, rows, tuple(_malformed(reader))))
    _require_rows(reader, rows)


def _malformed(reader: Reader) -> list[Problem]:
    rows = reader.malformed
    if not rows:
        return []
    what = "do not have as many cells as the header"
    return [Problem("(whole rows)", what, "check separators inside cells", len(rows), tuple(rows[:SHOWN_ROWS]))]


def _joined(first: Problem, more: Problem) -> Problem:
    return replace(first, cells=first.cells + more.cells, rows=(first.rows + more.rows)[:SHOWN_ROWS])


def _in_file(row: int, malformed: list[int]) -> int:
    """The row's number in the file, where rows that are no records count too."""
    for left_out in malformed:
        row += left_out <= row
    return row
