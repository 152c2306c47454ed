"""Columns added and subtracted: a stay is discharge − admission, a bill the sum of its parts.

Either the total is a column of its own, which is then computed and never modelled, or it only has bounds. Between
columns that were drawn apart a bound is often broken; such a row takes the total of a row that keeps it, and its first
added column is moved accordingly, so that totals spread as they do elsewhere and do not heap at the bound.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from synth.encoding.records import Values
from synth.encoding.scales import SECONDS, Floats, floor_time, scale_of
from synth.schema import Datetime, Schema, Strict

Mask = npt.NDArray[np.bool_]
Columns = dict[str, Values]


class Total(Strict):
    """What columns come to, added and subtracted: another column, or a number within bounds."""

    kind: Literal["total"] = "total"
    add: list[str] = Field(min_length=1, description="Columns that are added: numbers, or one time and durations.")
    subtract: list[str] = Field([], description="Columns that are subtracted.")
    column: str | None = Field(None, description="The column that the total is, computed from the others.")
    min: float | None = Field(None, description="Least total, where it is no column.")
    max: float | None = Field(None, description="Largest total, where it is no column.")
    unit: Literal["day", "hour", "minute", "second"] = Field(
        "day", description="In which durations are counted where times are among the columns."
    )

    @model_validator(mode="after")
    def _one_use(self) -> Total:
        if (self.column is None) == (self.min is None and self.max is None):
            raise ValueError("a total is either a column, or a number with min, max or both; give one of the two")
        if len({*self.terms}) != len(self.terms) or self.column in self.terms:
            raise ValueError("a total names a column twice; name each once")
        return self

    @property
    def terms(self) -> list[str]:
        return [*self.add, *self.subtract]

    @property
    def low(self) -> float:
        return -np.inf if self.min is None else self.min

    @property
    def high(self) -> float:
        return np.inf if self.max is None else self.max


def instants(name: str, schema: Schema, values: Floats) -> Floats:
    """Values of a numeric column on a scale that columns of one kind share: times since 1 January of year 1."""
    column = schema.numeric[name]
    if not isinstance(column, Datetime):
        return values
    start = floor_time(column.min, column)
    return values + (start - start.min).total_seconds()


def with_total(one: Total, columns: Columns, schema: Schema) -> Columns:
    """The columns that make the constraint true, as far as their own bounds allow."""
    found = _value(one, columns, schema)
    if one.column is not None:
        return {one.column: _placed(one, one.column, found, schema)}
    broken = _outside(one, found)
    if not broken.any():
        return {}
    wanted = found.copy()
    wanted[broken] = _donated(one, found, int(broken.sum()))
    name = one.add[0]
    moved = _in_units(one, name, columns[name], schema) + wanted - found
    return {name: np.where(broken, _placed(one, name, moved, schema), columns[name])}


def breaks_total(one: Total, columns: Columns, schema: Schema) -> Mask:
    """Which rows do not have the total; one with a missing cell has any."""
    found = _value(one, columns, schema)
    if one.column is None:
        return _outside(one, found)
    actual = columns[one.column].astype(np.float64)
    expected = _unbounded(one, one.column, found, schema)
    return ~np.isclose(actual, expected, rtol=0, atol=1e-9, equal_nan=True)


def total_problem(one: Total, schema: Schema, computed: set[str]) -> str | None:
    """What is wrong with it as a statement about this schema."""
    result = [] if one.column is None else [one.column]
    for name in (*one.terms, *result):
        if name not in schema.numeric:
            return f"'{name}' is no numeric or datetime column of the schema"
    if one.column is not None and one.column == schema.target:
        return f"'{one.column}' is the target; turn the total round"
    if both := [name for name in one.terms if name in computed]:
        return f"'{both[0]}' is computed itself; say the total of what it is computed from"
    times = sum(_is_time(name, schema) for name in one.add) - sum(_is_time(name, schema) for name in one.subtract)
    is_time = bool(result) and _is_time(result[0], schema)
    if times != int(is_time):
        return "times add up to no number: subtract one for each that is added, or give the time that one more makes"
    if result and not schema.numeric[result[0]].missing and any(schema.numeric[name].missing for name in one.terms):
        return f"a column may be empty but '{result[0]}' may not; declare it missing too"
    return None


def total_range(one: Total, lows: dict[str, Floats], highs: dict[str, Floats], schema: Schema) -> tuple[Floats, Floats]:
    """The least and the largest total that two columns' ranges allow: rows are those of the first, columns those of
    the second. Ranges are instants; NaN where a cell is missing."""
    first, second = one.terms
    unit = _unit(one)
    ranges = []
    for name in (first, second):
        factor = (1 if name in one.add else -1) / (unit if _is_time(name, schema) else 1)
        ends = lows[name] * factor, highs[name] * factor
        ranges.append((np.minimum(*ends), np.maximum(*ends)))
    return np.add.outer(ranges[0][0], ranges[1][0]), np.add.outer(ranges[0][1], ranges[1][1])


def _value(one: Total, columns: Columns, schema: Schema) -> Floats:
    """In units of the duration where times are among the columns."""
    added = sum(_in_units(one, name, columns[name], schema) for name in one.add)
    return np.asarray(added - sum(_in_units(one, name, columns[name], schema) for name in one.subtract))


def _in_units(one: Total, name: str, values: Values, schema: Schema) -> Floats:
    numbers = instants(name, schema, values.astype(np.float64))
    return numbers / _unit(one) if _is_time(name, schema) else numbers


def _unit(one: Total) -> float:
    return float(SECONDS[one.unit])


def _is_time(name: str, schema: Schema) -> bool:
    return isinstance(schema.numeric[name], Datetime)


def _unbounded(one: Total, name: str, found: Floats, schema: Schema) -> Floats:
    """A total in a column's own numbers, at its precision: times are cut to it, numbers rounded."""
    scale = scale_of(schema.numeric[name], name)
    if not _is_time(name, schema):
        return scale.round(found)
    seconds = found * _unit(one) - instants(name, schema, np.zeros(1))[0]
    cut: Floats = np.floor(seconds / scale.unit + 1e-6) * scale.unit
    return cut


def _placed(one: Total, name: str, found: Floats, schema: Schema) -> Floats:
    return scale_of(schema.numeric[name], name).snap(_unbounded(one, name, found, schema))


def _outside(one: Total, found: Floats) -> Mask:
    tolerance = 1e-6
    broken: Mask = (found < one.low - tolerance) | (found > one.high + tolerance)  # False for a missing cell
    return broken


def _donated(one: Total, found: Floats, count: int) -> Floats:
    """Totals of rows that keep the bounds, in turn; where there are none, at even distances between the bounds."""
    kept = found[~np.isnan(found) & ~_outside(one, found)]
    if not len(kept):
        ends = [end for end in (one.low, one.high) if np.isfinite(end)]
        kept = np.linspace(ends[0], ends[-1], 101)
    return np.resize(kept, count)
