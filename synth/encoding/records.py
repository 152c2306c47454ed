"""A party's rows as numbers, checked against the public schema, and back.

This is the only place where cells become numbers, so everything behind it may rely on the schema: a code is a declared
label, a number lies within its bounds at its declared precision. There are two ways for cells that do not fit. Beside
a release, `fit` makes something of every one of them (see `fallbacks`): adding a row to the frame adds that row's
record or nothing, and changes no other. Where nothing leaves, `encode` refuses. What is wrong is described by column
and row number only, never by a cell, and a `DataError` stays with the party whose rows these are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from synth.encoding.cell_text import read_labels, read_numbers, read_times
from synth.encoding.fallbacks import Flaw, Mask, Released, in_words, with_fallbacks
from synth.encoding.rows import ROWS_AT_ONCE, Rows
from synth.encoding.scales import EXACT, Floats, scale_of
from synth.encoding.time_cells import time_texts
from synth.errors import DataError, SchemaError
from synth.schema import Boolean, Categorical, Column, Datetime, Identifier, Integer, NumericColumn, Schema

Values = npt.NDArray[np.int64] | Floats
Indices = npt.NDArray[np.int64] | npt.NDArray[np.bool_] | slice
FIRST_ROW = 2  # row numbers are those of a file with a header, as editors and spreadsheets count: the header is row 1
SHOWN_ROWS = 5


@dataclass(frozen=True, eq=False)
class Records(Rows):
    """Columns in schema order, identifiers left out.

    Discrete columns hold int64 codes (position of the label; len(labels) for a missing cell), numeric columns float64
    (NaN for a missing cell; times in seconds since the lowest one).
    """

    columns: dict[str, Values]

    def __post_init__(self) -> None:
        if len({len(values) for values in self.columns.values()}) != 1:
            raise ValueError("columns of Records must exist and be equally long")

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def pieces(self) -> Iterator[Records]:
        for start in range(0, max(len(self), 1), ROWS_AT_ONCE):
            yield self.take(slice(start, start + ROWS_AT_ONCE))

    def at_hand(self) -> Records:
        return self

    def take(self, indices: Indices) -> Records:
        return Records({name: values[indices] for name, values in self.columns.items()})

    @staticmethod
    def concat(parts: Sequence[Records]) -> Records:
        names = parts[0].columns
        return Records({name: np.concatenate([part.columns[name] for part in parts]) for name in names})


@dataclass(frozen=True)
class Problem:
    """One way in which one column does not fit. `rows` are the first few row numbers (the header is row 1).

    `outcome` is what the schema's rule makes of it; without one nothing can be read.
    """

    column: str
    what: str
    remedy: str
    cells: int = 0
    rows: tuple[int, ...] = ()
    outcome: str = ""

    def __str__(self) -> str:
        where = ""
        if self.cells:
            more = ", …" if self.cells > len(self.rows) else ""
            where = f" in {self.cells} cell(s), rows {', '.join(map(str, self.rows))}{more}"
        return f"column '{self.column}': {self.what}{where}; {self.remedy}"


class Codec:
    """Frames (text as read from CSV, or typed as read from Parquet) to records and back, under one schema."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        for name, column in schema.released.items():
            if isinstance(column, Categorical | Boolean):
                _check_labels(name, column.labels, schema.missing_values)
            else:
                _check_number(name, column)

    def encode(self, frame: pd.DataFrame) -> Records:
        """The rows as records; raises `DataError` listing every problem."""
        records, problems, _ = self._read(frame)
        if problems or records is None:
            raise _unfit(problems)
        return records

    def fit(self, frame: pd.DataFrame) -> tuple[Records, list[Problem]]:
        """The rows as records, by the schema's rules where a cell does not fit, and what was changed.

        Only a header that is not the schema's is refused: that is the same whatever the rows are.
        """
        records, problems, _ = self.fit_rows(frame)
        return records, problems

    def fit_rows(self, frame: pd.DataFrame) -> tuple[Records, list[Problem], Mask]:
        """The same, with the rows that were left out."""
        records, problems, left_out = self.fit_all(frame)
        return records.take(~left_out), problems, left_out

    def fit_all(self, frame: pd.DataFrame) -> tuple[Records, list[Problem], Mask]:
        """The same with every row in its place: those that the rules leave out hold nothing."""
        records, problems, left_out = self._read(frame)
        if records is None:
            raise _unfit([problem for problem in problems if not problem.outcome])
        return records, problems, left_out

    def times(self, frame: pd.DataFrame) -> Floats:
        """What orders the rows of a sequence, NaN where it cannot be read; 0 where the schema names nothing."""
        name = self.schema.sequence.time if self.schema.sequence else None
        if name is None:
            return np.zeros(len(frame))
        values, _ = self._read_column(self.schema.columns[name], frame[name])
        return values.astype(np.float64)

    def problems(self, frame: pd.DataFrame) -> list[Problem]:
        """Everything that keeps `encode` from accepting the frame, for the party's own eyes."""
        return self._read(frame)[1]

    def problems_of_header(self, header: list[str]) -> list[Problem]:
        """The same of a frame without rows."""
        return _header_problems(self.schema, header)

    def decode(self, records: Records) -> pd.DataFrame:
        """A frame with labels, numbers at declared precision and times written in the declared format."""
        return pd.DataFrame(
            {name: self._written(name, records.columns[name]) for name in self.schema.released}, copy=False
        )

    def _read(self, frame: pd.DataFrame) -> tuple[Records | None, list[Problem], Mask]:
        """The records by the schema's rules, if there is a column for each of its columns, every problem, and the rows
        that the rules leave out."""
        header = [str(name) for name in frame.columns]
        problems = _header_problems(self.schema, header)
        columns: dict[str, Values] = {}
        left_out, usable = np.zeros(len(frame), dtype=bool), not problems
        for name, column in self.schema.released.items():
            if header.count(name) == 1:
                values, flaws = self._read_column(column, frame.iloc[:, header.index(name)])
                columns[name], unfit = with_fallbacks(column, values, flaws)
                left_out |= unfit
                problems += _located(name, column, flaws)
        return Records(columns) if usable else None, problems, left_out

    def _read_column(self, column: Column, cells: pd.Series) -> tuple[Values, list[Flaw]]:
        empty_texts = self.schema.missing_values
        if isinstance(column, Categorical | Boolean):
            return read_labels(cells, column, empty_texts)
        if isinstance(column, Datetime):
            return read_times(cells, column, empty_texts)
        assert not isinstance(column, Identifier)
        return read_numbers(cells, column, empty_texts)

    def _written(self, name: str, values: Values) -> pd.Series:
        column = self.schema.released[name]
        if isinstance(column, Categorical | Boolean):
            return pd.Series(pd.array([*column.labels, None], dtype="str").take(values.astype(np.int64)))
        numbers = scale_of(column).snap(values.astype(np.float64))
        if isinstance(column, Datetime):
            return time_texts(numbers, column)
        if isinstance(column, Integer):
            return pd.Series(numbers).astype("Int64" if column.missing else "int64")
        return pd.Series(numbers)


def _unfit(problems: Iterable[Problem]) -> DataError:
    return DataError("the rows do not fit the schema (row 1 is the header): " + "; ".join(map(str, problems)) + ".")


def _located(name: str, column: Released, flaws: Iterable[Flaw]) -> list[Problem]:
    found = []
    for flaw in flaws:
        positions = np.flatnonzero(flaw.bad)
        if len(positions):
            rows = tuple(int(position) + FIRST_ROW for position in positions[:SHOWN_ROWS])
            outcome = in_words(column, flaw.kind)
            found.append(Problem(name, flaw.what, flaw.remedy, cells=len(positions), rows=rows, outcome=outcome))
    return found


def _header_problems(schema: Schema, header: list[str]) -> list[Problem]:
    problems = [
        Problem(name, "is missing from the file", "add it, or take it out of the schema")
        for name in schema.released
        if name not in header
    ]
    if problems and len(header) == 1 and len(schema.columns) > 1:
        return [
            Problem(
                header[0],
                f"is the only one, where the schema has {len(schema.columns)}",
                "check the file's separator and that it has a header",
            )
        ]
    for name in dict.fromkeys(header):
        if name not in (*schema.columns, *schema.added):
            problems.append(Problem(name, "is not in the schema", "remove it, or declare it (as an identifier)"))
        elif header.count(name) > 1:
            problems.append(Problem(name, "occurs more than once", "keep one of them"))
    return problems


def _check_labels(name: str, labels: list[str], empty_texts: list[str]) -> None:
    if len(set(labels)) != len(labels):
        raise SchemaError(f"column '{name}': two labels are the same; make them distinct.")
    if both := sorted(set(labels) & set(empty_texts)):
        raise SchemaError(
            f"column '{name}': {both} is a label and also listed in missing_values; remove it from one of them."
        )


def _check_number(name: str, column: NumericColumn) -> None:
    scale = scale_of(column, name)
    if not isinstance(column, Datetime) or scale.highest > EXACT:
        return
    probes = np.unique(scale.snap(np.array([scale.lowest, scale.lowest + scale.step, scale.highest])))
    has_zone = "%z" in column.format.lower()  # one text with a zone would give the whole column one
    if has_zone or not np.array_equal(read_times(time_texts(probes, column), column, [])[0], probes):
        raise SchemaError(
            f"column '{name}': the format '{column.format}' cannot write every {column.precision} between min and "
            "max so that it can be read back; add the missing parts (no time zone) or declare a coarser precision."
        )
