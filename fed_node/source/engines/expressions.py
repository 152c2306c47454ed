"""Words of the engines that Ibis has no name for, and literals that every engine reads to the last bit."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import ibis
import ibis.expr.datatypes as dt

from synth.encoding.plain_cells import blanks_matter

FEW = 64  # thresholds that are compared one after the other, in a tree
Expression = Any  # Ibis has types for its expressions, but they are attached at run time


@cache
def function(name: str, takes: tuple[str, ...], gives: str) -> Callable[..., Expression]:
    """A function that the engine has and Ibis does not know, by the types of its arguments and its value."""
    return _declared(ibis.udf.scalar.builtin, name, takes, gives)


@cache
def aggregate(name: str, takes: tuple[str, ...], gives: str) -> Callable[..., Expression]:
    """The same for what is computed over all rows."""
    return _declared(ibis.udf.agg.builtin, name, takes, gives)


def _declared(kind: Any, name: str, takes: tuple[str, ...], gives: str) -> Callable[..., Expression]:
    names = [f"argument_{number}" for number in range(len(takes))]

    def declared() -> None:
        """Never called: its signature becomes a call in the engine's query."""

    declared.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(each, inspect.Parameter.POSITIONAL_OR_KEYWORD) for each in names]
    )
    signature = (tuple(dt.dtype(each) for each in takes), dt.dtype(gives))
    found: Callable[..., Expression] = kind(declared, name=name, signature=signature)
    return found


def position(values: Sequence[str], dtype: str, cell: Expression) -> Expression:
    """Where the cell stands among the values, from 1; 0 if it is none of them."""
    found = function("array_position", (f"array<{dtype}>", dtype), "int64")
    return found(array_of(values, dtype), cell).fill_null(0)


def exactly(value: float | int | str, dtype: str) -> Expression:
    """A literal by way of its text: an engine may read `0.1` as a decimal and convert that with an error."""
    return ibis.literal(str(value)).cast(dtype)


def array_of(values: Sequence[float | int | str], dtype: str) -> Expression:
    if dtype == "string":
        return ibis.array(list(values))
    # One text that is cut by the engine: thousands of literals would take Ibis seconds to write.
    return ibis.literal(",".join(map(str, values))).split(",").cast(f"array<{dtype}>")


def quoted(name: str) -> str:
    """A column's name in a query that we write ourselves."""
    return '"' + name.replace('"', '""') + '"'


def any_of(conditions: Sequence[Expression]) -> Expression:
    found = ibis.literal(False)
    for condition in conditions:
        found = found | condition
    return found


def tree(value: Expression, bounds: Sequence[Expression], leaves: Sequence[Any]) -> Expression:
    """`leaves[k]`, where k bounds, in their order, are not above the value: by halving."""
    if not bounds:
        return leaves[0]
    middle = len(bounds) // 2
    below = tree(value, bounds[:middle], leaves[: middle + 1])
    return ibis.ifelse(value < bounds[middle], below, tree(value, bounds[middle + 1 :], leaves[middle + 1 :]))


def empty_text(cell: Expression, empty_texts: list[str]) -> Expression:
    """As `synth.encoding.plain_cells` has it, whose blanks are what Ibis strips."""
    empty = cell.strip().isin(empty_texts).fill_null(False)
    if blanks_matter(empty_texts):
        empty = empty | cell.isin(empty_texts).fill_null(False)
    return cell.isnull() | empty
