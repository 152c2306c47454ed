"""The counts themselves: one pass of the engine over the rows for a whole list of tables.

GROUPING SETS counts many tables in one pass; Ibis has no word for them, so the query around Ibis' own is written here.
What comes back are cells and how many rows lie in each: no more of it than the tables have cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fed_node.source.engines.dialects import fetched
from fed_node.source.engines.expressions import Expression
from synth.encoding import contingency
from synth.encoding.contingency import Clique, Ints

TABLES_AT_ONCE = 512  # more than that no engine plans gladly


def grouped(
    engine: Any, rows: Expression, bins: Sequence[Expression], sizes: Sequence[int], cliques: Sequence[Clique]
) -> Ints:
    """The contingency tables of the cliques over rows of which column j lies in `bins[j]`."""
    total = np.zeros(contingency.cell_count(cliques, sizes), dtype=np.int64)
    start = 0
    for first in range(0, len(cliques), TABLES_AT_ONCE):
        some = cliques[first : first + TABLES_AT_ONCE]
        stop = start + contingency.cell_count(some, sizes)
        total[start:stop] = _tables(_counted(engine, rows, bins, some), sizes, some)
        start = stop
    return total


def _counted(engine: Any, rows: Expression, bins: Sequence[Expression], cliques: Sequence[Clique]) -> Ints:
    """A line for every cell with rows in it: its bin in every column, -1 in those that its table does not have, and
    how many rows there are."""
    used = sorted({column for clique in cliques for column in clique})
    inner = engine.compile(rows.select(**{f"c{column}": bins[column].cast("int32") for column in used}))
    sets = [", ".join(f"c{column}" for column in clique) for clique in dict.fromkeys(cliques)]
    found = fetched(
        engine,
        f"SELECT {', '.join(f'COALESCE(c{column}, -1)' for column in used)}, COUNT(*) FROM ({inner}) AS cells "
        f"GROUP BY GROUPING SETS ({', '.join(f'({columns})' for columns in sets)})",
        len(used) + 1,
    )
    lines = np.full((len(found), max(used) + 2), -1, dtype=np.int64)
    lines[:, [*used, -1]] = found
    return lines


def _tables(lines: Ints, sizes: Sequence[int], cliques: Sequence[Clique]) -> Ints:
    """A line belongs to the table whose columns it has: a bin is never -1."""
    held = lines[:, :-1] >= 0
    width, tables = held.sum(axis=1), []
    for clique, shape in zip(cliques, contingency.shapes(cliques, sizes), strict=True):
        mine = lines[held[:, clique].all(axis=1) & (width == len(clique))]
        place = np.ravel_multi_index([mine[:, column] for column in clique], shape)
        table = np.zeros(int(np.prod(shape)), dtype=np.int64)
        table[place] = mine[:, -1]
        tables.append(table)
    return np.concatenate(tables)
