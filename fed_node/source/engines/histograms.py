"""DuckDB's own histograms, for the fine cells of numbers: thousands of bounds, each row placed by a binary search.

A tree of comparisons that long takes 6,500 ns a row there, this 180. Bounds are ends here, not beginnings: the value
before the one at which a cell begins.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

import ibis
import numpy as np

from fed_node.source.engines.compared import Compared
from fed_node.source.engines.expressions import Expression, aggregate, array_of
from fed_node.source.engines.place import Place
from synth.encoding.cells import Cells
from synth.encoding.contingency import Ints

COLUMNS_AT_ONCE = 32  # in one query


def histograms(rows: Expression, places: Mapping[str, Place], cells: Cells) -> Ints:
    """Of all columns, one after the other."""
    names, found = list(places), list[Ints]()
    for first in range(0, len(names), COLUMNS_AT_ONCE):
        some = {name: _ends(places[name], _width(cells, name)) for name in names[first : first + COLUMNS_AT_ONCE]}
        asked: dict[str, Expression] = {"rows": rows.count()}
        for number, (value, dtype, ends) in enumerate(some.values()):
            asked[f"n{number}"] = value.count()
            if ends:
                histogram = aggregate("histogram", (dtype, f"array<{dtype}>"), f"map<{dtype}, uint64>")
                asked[f"h{number}"] = histogram(value, array_of(ends, dtype)).values()
        row = rows.aggregate(**asked).to_pyarrow().to_pylist()[0]
        for number, (name, (_, _, ends)) in enumerate(some.items()):
            found.append(_counts(row, number, len(ends), _width(cells, name)))
    return np.concatenate(found)


def _width(cells: Cells, name: str) -> int:
    return int(cells.slices[name].stop - cells.slices[name].start)


def _counts(row: dict[str, Any], number: int, ends: int, width: int) -> Ints:
    """The cells between ends, the last one, and the missing one, where there is one."""
    within = (row.get(f"h{number}") or [0] * ends)[:ends]
    present = row[f"n{number}"]
    counts = [*within, present - sum(within), row["rows"] - present]
    return np.array(counts[:width], dtype=np.int64)


def _ends(place: Place, width: int) -> tuple[Expression, str, list[str]]:
    """What is counted (NULL in the missing cell), its type, and where cells end."""
    if not isinstance(place, Compared):
        code = place.bin(np.arange(width, dtype=np.int64)).cast("int64")
        return code, "int64", [str(end) for end in range(width - 1)]
    value = ibis.ifelse(place.empty, ibis.null(), place.value)
    return value, place.dtype, [_before(bound, place.dtype) for bound in place.bounds]


def _before(bound: str, dtype: str) -> str:
    match dtype:
        case "float64":
            return repr(float(np.nextafter(float(bound), -np.inf)))
        case "int64":
            return str(int(bound) - 1)
        case "date":
            return str(dt.date.fromisoformat(bound) - dt.timedelta(days=1))
    return str(dt.datetime.fromisoformat(bound) - dt.timedelta(microseconds=1))
