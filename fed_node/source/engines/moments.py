"""Columns of days and moments as the engine holds them: compared with those at which cells begin."""

from __future__ import annotations

import numpy as np

from fed_node.source.engines.compared import Compared
from fed_node.source.engines.dialects import Dialect
from fed_node.source.engines.expressions import Expression, exactly, function
from fed_node.source.engines.forms import Form
from fed_node.source.engines.place import with_rule
from synth.encoding.cells import Cells
from synth.encoding.fallbacks import Kind
from synth.encoding.scales import floor_time
from synth.schema import Datetime

DTYPES = {Form.DAY: "date", Form.MOMENT: "timestamp", Form.NANOSECOND: "int64", Form.ZONED: "int64"}
FIRST, LAST = np.datetime64("0001-01-01", "s"), np.datetime64("9999-12-31T23:59:59", "s")
YEARS = {
    Form.DAY: ("0001-01-01", "9999-12-31"),
    Form.MOMENT: ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"),
}
NANOSECONDS = (np.datetime64("1678-01-01", "s"), np.datetime64("2262-01-01", "s"))  # that 64 bits hold, in whole years


def moment_place(cell: Expression, form: Form, name: str, cells: Cells, dialect: Dialect) -> Compared | None:
    column = cells.schema.numeric[name]
    if not isinstance(column, Datetime) or form not in DTYPES:
        return None
    scale, start = cells.scales[name], np.datetime64(floor_time(column.min, column), "s")
    begins = start + (cells.starts(name)[1:-1] * int(scale.unit)).astype("timedelta64[s]")
    above = start + np.timedelta64(int(scale.highest + scale.unit), "s")
    least, most = NANOSECONDS if form is Form.NANOSECOND else (FIRST, LAST - np.timedelta64(1, "D"))
    if start < least or above > most:
        return None
    value, dtype = _value(cell, form), DTYPES[form]
    empty, unreadable = _unreadable(cell, form, dialect)
    told = ~empty & ~unreadable
    flaws = {
        Kind.UNREADABLE: unreadable,
        Kind.BELOW: told & (value < exactly(_text(start, form), dtype)).fill_null(False),
        Kind.ABOVE: told & (value >= exactly(_text(above, form), dtype)).fill_null(False),
    }
    if not column.missing:
        flaws[Kind.EMPTY] = empty
    emptied = empty | with_rule(column, flaws, "missing")
    bounds = [_text(moment, form) for moment in begins]
    return Compared(dialect, value, dtype, bounds, emptied, with_rule(column, flaws, "leave-out"))


def _value(cell: Expression, form: Form) -> Expression:
    if form is Form.NANOSECOND:
        return function("epoch_ns", ("timestamp(9)",), "int64")(cell)
    return exactly(0, "int64") if form is Form.ZONED else cell


def _unreadable(cell: Expression, form: Form, dialect: Dialect) -> tuple[Expression, Expression]:
    """Which cells are empty, and which hold no time; neither is ever NULL."""
    empty = cell.isnull()
    if form is Form.ZONED:
        return empty, ~empty
    if dialect.far_years == "fit":
        return empty, empty & ~empty
    far = far_away(cell, form)
    return (empty, far) if dialect.far_years == "unreadable" else (empty | far, empty & ~empty)


def far_away(cell: Expression, form: Form) -> Expression:
    """Whether a day or moment lies outside the years 1 to 9999; never NULL."""
    first, last = YEARS[form]
    return ((cell < exactly(first, DTYPES[form])) | (cell > exactly(last, DTYPES[form]))).fill_null(False)


def _text(moment: np.datetime64, form: Form) -> str:
    """The first value that is not before the moment, written for the engine."""
    if form is Form.NANOSECOND:
        return str(int(moment.astype(np.int64)) * 10**9)
    if form is Form.DAY:
        day = moment.astype("datetime64[D]")
        return str(day if day == moment else day + 1)
    return "0" if form is Form.ZONED else str(moment).replace("T", " ")
