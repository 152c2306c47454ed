"""Columns of numbers as the engine holds them, read as `synth.encoding.cell_text` reads them."""

from __future__ import annotations

import ibis

from fed_node.source.engines.compared import Compared
from fed_node.source.engines.dialects import Dialect
from fed_node.source.engines.expressions import Expression, any_of, exactly, function
from fed_node.source.engines.forms import Form
from fed_node.source.engines.place import with_rule
from synth.encoding.cells import Cells
from synth.encoding.fallbacks import Kind
from synth.encoding.plain_cells import as_numbers
from synth.encoding.scales import EXACT
from synth.encoding.thresholds import cell_thresholds, lowest_above, lowest_inside
from synth.schema import Continuous, Integer

NUMBERS = (Form.TRUTH, Form.WHOLE, Form.REAL, Form.SINGLE, Form.DECIMAL)
BEYOND = 2**1024 - 2**970  # nearer to infinity than to the largest float64
TINY = "1e-300"
NOTHING = f"{5**1075}e-1075"  # 2^-1075: no nearer to the smallest float64 than to 0


def number_place(
    cell: Expression, form: Form, name: str, cells: Cells, dialect: Dialect, empty_texts: list[str]
) -> Compared | None:
    column = cells.schema.numeric[name]
    if form not in NUMBERS or not isinstance(column, Integer | Continuous) or not spelled_exactly(empty_texts):
        return None
    scale, value = cells.scales[name], real_value(cell, form)
    empty, infinite = empty_number(cell, value, form, empty_texts), value.isinf().fill_null(False)
    told = ~empty & ~infinite
    flaws = {
        Kind.INFINITE: infinite & ~empty,
        Kind.BELOW: told & (value < exactly(repr(lowest_inside(scale)), "float64")).fill_null(False),
        Kind.ABOVE: told & (value >= exactly(repr(lowest_above(scale)), "float64")).fill_null(False),
    }
    if not column.missing:
        flaws[Kind.EMPTY] = empty
    if isinstance(column, Integer):
        floor = function("floor", ("float64",), "float64")  # Ibis' own makes a whole number of it, and fails on NaN
        flaws[Kind.FRACTION] = told & (value != floor(value)).fill_null(False)
    bounds = [repr(float(bound)) for bound in cell_thresholds(scale, cells.starts(name))]
    emptied = empty | with_rule(column, flaws, "missing")
    return Compared(dialect, value, "float64", bounds, emptied, with_rule(column, flaws, "leave-out"))


def spelled_exactly(empty_texts: list[str]) -> bool:
    """Whether numbers that mean 'empty' are found among float64: whole ones beyond are compared as whole numbers."""
    return all(abs(number) < EXACT for number in as_numbers(empty_texts))


def real_value(cell: Expression, form: Form) -> Expression:
    """The nearest float64."""
    if form is Form.TRUTH:
        return ibis.ifelse(cell, exactly("1", "float64"), exactly("0", "float64"))
    if form is Form.DECIMAL and cell.type().precision is None:
        return _within_reach(cell)
    return cell if form is Form.REAL else cell.cast("float64")


def empty_number(cell: Expression, value: Expression, form: Form, empty_texts: list[str]) -> Expression:
    """Never NULL."""
    spelled = [] if form is Form.TRUTH else [exactly(repr(float(n)), "float64") for n in as_numbers(empty_texts)]
    return cell.isnull() | value.isnan().fill_null(True) | any_of([(value == n).fill_null(False) for n in spelled])


def _within_reach(cell: Expression) -> Expression:
    """A decimal of any length: PostgreSQL refuses to convert what is too large or too small for a float64."""
    size = cell.abs()
    extreme = ibis.ifelse(cell > 0, exactly("Infinity", "float64"), exactly("-Infinity", "float64"))
    faint = ibis.ifelse(cell > 0, exactly(TINY, "float64"), exactly("-" + TINY, "float64"))
    return ibis.cases(
        (cell == exactly("NaN", "decimal"), exactly("NaN", "float64")),
        (size >= exactly(BEYOND, "decimal"), extreme),
        (size <= exactly(NOTHING, "decimal"), exactly("0", "float64")),
        (size < exactly(TINY, "decimal"), faint),
        else_=cell.cast("float64"),
    )
