"""A table as the metrics see it: category codes and plain numbers, read once through the public schema.

Real and synthetic rows must be measured with the same ruler, and the only ruler that does not itself depend on
anybody's rows is the schema. So codes index the declared labels, bins cut the declared bounds, and an empty cell is
one more category. Cells that do not fit the schema are an error here, never a silently dropped row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from synth.encoding.cell_text import read_labels, read_numbers, read_times
from synth.encoding.fallbacks import Flaw, Kind
from synth.encoding.scales import scale_of
from synth.errors import InputError
from synth.schema import Boolean, Categorical, Datetime, Integer, NumericColumn, Schema

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

PUBLIC_BINS = 32
"""Equal-width bins over the declared domain; integer columns with fewer values get one bin per value."""
LARGEST = 1e15
"""Numbers farther than so many declared ranges from the lowest value would overflow in sums of squares."""


@dataclass(frozen=True, eq=False)
class Table:
    """One table's released columns. `codes[name]` is in 0..len(labels), the last one meaning 'empty cell';
    `numbers[name]` is float with NaN for an empty cell (times in seconds since the lowest one)."""

    schema: Schema
    rows: int
    codes: dict[str, IntArray]
    numbers: dict[str, FloatArray]

    @property
    def columns(self) -> list[str]:
        return list(self.schema.released)

    def take(self, index: NDArray[np.intp]) -> Table:
        """The rows at these positions, in this order."""
        codes = {name: values[index] for name, values in self.codes.items()}
        numbers = {name: values[index] for name, values in self.numbers.items()}
        return Table(self.schema, len(index), codes, numbers)

    def sample(self, rows: int, rng: np.random.Generator) -> Table:
        """At most `rows` rows, drawn without replacement; the table itself when it is no larger."""
        return self if self.rows <= rows else self.take(rng.choice(self.rows, rows, replace=False))

    def filled(self, name: str) -> FloatArray:
        """The numbers of a numeric column without its empty cells."""
        values = self.numbers[name]
        return values[~np.isnan(values)]

    def discretized(self, name: str) -> IntArray:
        """Codes of a discrete column, public bins of a numeric one; the last code is 'empty cell'."""
        if name in self.codes:
            return self.codes[name]
        return public_bins(self.numbers[name], self.schema.numeric[name])

    def cells(self, name: str) -> int:
        """How many codes `discretized` can give, 'empty cell' included."""
        if name in self.codes:
            return len(self.schema.discrete[name].labels) + 1
        return bin_count(self.schema.numeric[name]) + 1


Rows = pd.DataFrame | Table


def table_of(rows: Rows, schema: Schema, what: str = "the table") -> Table:
    """Read a data frame through the schema; `what` names it in errors. A `Table` is returned unchanged."""
    if isinstance(rows, Table):
        return rows
    _check_columns(rows, schema, what)
    codes: dict[str, IntArray] = {}
    numbers: dict[str, FloatArray] = {}
    for name, column in schema.released.items():
        if isinstance(column, Categorical | Boolean):
            codes[name], flaws = read_labels(rows[name], column, schema.missing_values)
            _readable(codes[name], flaws, name, what)
        else:
            numbers[name], flaws = _read_numeric(rows[name], column, schema.missing_values)
            _readable(numbers[name], flaws, name, what)
            _measurable(numbers[name], column, name, what)
    return Table(schema, len(rows), codes, numbers)


def joined(tables: Sequence[Table]) -> Table:
    """The rows of several tables of one schema, in order."""
    first = tables[0]
    codes = {name: np.concatenate([table.codes[name] for table in tables]) for name in first.codes}
    numbers = {name: np.concatenate([table.numbers[name] for table in tables]) for name in first.numbers}
    return Table(first.schema, sum(table.rows for table in tables), codes, numbers)


def _read_numeric(cells: pd.Series, column: NumericColumn, empty_texts: list[str]) -> tuple[FloatArray, list[Flaw]]:
    if isinstance(column, Datetime):
        return read_times(cells, column, empty_texts)
    return read_numbers(cells, column, empty_texts)


def bin_count(column: NumericColumn) -> int:
    if isinstance(column, Integer):
        return min(PUBLIC_BINS, column.max - column.min + 1)
    return PUBLIC_BINS


def bin_edges(column: NumericColumn) -> FloatArray:
    """Edges of the public bins. Integer bins end just before the next integer, so each value falls inside one."""
    scale = scale_of(column)
    low, high = scale.lowest, scale.highest
    if isinstance(column, Integer):
        high += 1.0
    return np.linspace(low, high if high > low else low + 1.0, bin_count(column) + 1)


def public_bins(values: FloatArray, column: NumericColumn) -> IntArray:
    """Bin of each value; values outside the declared domain count in the end bins, NaN is the last code."""
    edges = bin_edges(column)
    bins = len(edges) - 1
    scaled = (values - edges[0]) * bins / (edges[-1] - edges[0])  # multiplied first: exact for integers
    inside = np.clip(np.floor(np.nan_to_num(scaled)), 0, bins - 1).astype(np.int64)
    return np.where(np.isnan(values), bins, inside)


def _readable(values: IntArray | FloatArray, flaws: list[Flaw], name: str, what: str) -> None:
    """A cell that has a number is measured, however far outside its bounds: that is a finding about the table. A cell
    that has none (undeclared label, text for a number, empty where that is not allowed) cannot be."""
    for flaw in flaws:
        has_none = values.dtype.kind == "i" or flaw.kind is Kind.INFINITE
        bad = flaw.bad if has_none else flaw.bad & np.isnan(values)
        if bad.any():
            raise InputError(f"column '{name}' in {what} has {int(bad.sum())} cell(s): {flaw.what}; {flaw.remedy}")


def _measurable(values: FloatArray, column: NumericColumn, name: str, what: str) -> None:
    scale = scale_of(column)
    far = np.abs(values - scale.lowest) > LARGEST * ((scale.highest - scale.lowest) or 1.0)
    if far.any():
        raise InputError(
            f"column '{name}' in {what} has {int(far.sum())} cell(s) more than {LARGEST:g} times its declared range "
            "away; nothing can be measured with such numbers: repair the table"
        )


def _check_columns(frame: pd.DataFrame, schema: Schema, what: str) -> None:
    header = [str(name) for name in frame.columns]
    if not set(header) & set(schema.columns):  # the names are not shown: they are probably the cells of a row
        raise InputError(f"{what} has none of the schema's columns; is there a header line?")
    if missing := [name for name in schema.released if name not in header]:
        raise InputError(f"{what} lacks {_names(missing)} of the schema; export them too, or edit the schema")
    if undeclared := [name for name in header if name not in (*schema.columns, *schema.added)]:
        raise InputError(f"{what} has {_names(undeclared)} that the schema does not declare; drop or declare them")
    if len(set(header)) != len(header):
        raise InputError(f"{what} has two columns of one name; keep one of them")
    if len(frame) == 0:
        raise InputError(f"{what} has no rows; give a table with rows")


def _names(names: list[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:5]) + (", …" if len(names) > 5 else "")
    return f"column{'s' if len(names) > 1 else ''} {shown}"
