"""What becomes of a cell that does not fit: the rule that makes encoding total.

A refusal would tell the aggregator, exactly and at no charge, that some row does not fit, and the aggregator may have
written the bounds. So every cell becomes something, by a public rule that looks at nothing but the cell and the schema:

| cell                                    | becomes                                                               |
|-----------------------------------------|-----------------------------------------------------------------------|
| number or time outside the bounds       | the nearest bound                                                     |
| not whole, where whole numbers belong   | the nearest whole number                                              |
| undeclared label                        | `other` if declared, else empty if allowed, else its row is left out  |
| unreadable, or infinite                 | empty if allowed, else its row is left out                            |
| empty, where that is not allowed        | its row is left out                                                   |

A column's `unfit` comes before it: `missing` and `leave-out` for every such cell, `other` for empty ones too, `nearest`
for infinite ones too (what has nothing near, text or an empty cell, keeps the rule above).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import numpy as np
import numpy.typing as npt

from synth.encoding.scales import scale_of
from synth.schema import Boolean, Categorical, Continuous, Datetime, Integer, Unfit

Mask = npt.NDArray[np.bool_]
Released = Categorical | Boolean | Integer | Continuous | Datetime


class Kind(Enum):
    """Every way a cell can be unfit."""

    EMPTY = auto()
    UNDECLARED = auto()
    UNREADABLE = auto()
    INFINITE = auto()
    BELOW = auto()
    ABOVE = auto()
    FRACTION = auto()


@dataclass(frozen=True)
class Flaw:
    """One kind of unfit cell: which rows have it and what to do about it. Never the cell itself."""

    bad: Mask
    kind: Kind
    what: str
    remedy: str


def rule_for(column: Released, kind: Kind) -> Unfit:
    """The column's own rule where it has something to say about this kind of cell, else the one above."""
    has_nearest = {Kind.BELOW, Kind.ABOVE, Kind.FRACTION} | ({Kind.INFINITE} if column.unfit == "nearest" else set())
    if column.unfit not in (None, "nearest"):
        return column.unfit
    if kind in has_nearest:
        return "nearest"
    return "missing" if column.missing else "leave-out"


def in_words(column: Released, kind: Kind) -> str:
    """What the rule does to such cells, for the party that decides whether it wants that."""
    match rule_for(column, kind):
        case "missing":
            return "become empty"
        case "other":
            return f"become '{getattr(column, 'other', None)}'"
        case "leave-out":
            return "are left out with their rows"
        case "nearest" if kind in (Kind.BELOW, Kind.ABOVE):
            return f"become {getattr(column, 'min' if kind is Kind.BELOW else 'max')}"
        case _:
            return "become the nearest declared value"


def with_fallbacks(column: Released, values: npt.NDArray[Any], flaws: Iterable[Flaw]) -> tuple[npt.NDArray[Any], Mask]:
    """The values with every unfit one replaced, and the rows that are left out instead (their values mean nothing)."""
    out = np.zeros(len(values), dtype=bool)
    missing = len(column.labels) if isinstance(column, Categorical | Boolean) else np.nan
    values = values.copy()
    emptied = np.zeros(len(values), dtype=bool)
    for flaw in flaws:
        match rule_for(column, flaw.kind):
            case "missing":
                emptied |= flaw.bad
            case "other":
                values[flaw.bad] = len(column.labels) - 1 if isinstance(column, Categorical) else missing
            case "leave-out":
                out |= flaw.bad
            case "nearest":
                pass  # below, for all cells at once
    if not isinstance(column, Categorical | Boolean):
        scale = scale_of(column)
        values = np.clip(values, scale.lowest, scale.highest)
    values[emptied] = missing
    return values, out
