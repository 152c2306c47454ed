"""Contingency tables of cliques (sets of columns) over binned columns: the one place where rows are counted together.

A clique list is an integer array, one row a clique: column numbers rising, padded with -1. So it crosses the wire as it
is, and the tables of a whole list are one flat vector of integers that adds up over the parties.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Clique = tuple[int, ...]
PADDING = -1


def pack_cliques(cliques: Sequence[Clique]) -> Ints:
    """The cliques as one array, shape (cliques, columns of the widest)."""
    packed = np.full((len(cliques), max(map(len, cliques), default=0)), PADDING, dtype=np.int64)
    for row, clique in zip(packed, cliques, strict=True):
        row[: len(clique)] = clique
    return packed


def unpack_cliques(packed: npt.NDArray[np.generic]) -> list[Clique]:
    return [tuple(int(column) for column in row if column != PADDING) for row in packed]


def shapes(cliques: Sequence[Clique], sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """The table shape of every clique, where column j has sizes[j] bins."""
    return [tuple(sizes[column] for column in clique) for clique in cliques]


def cell_count(cliques: Sequence[Clique], sizes: Sequence[int]) -> int:
    """Integers in the answer to a clique list."""
    return sum(int(np.prod(shape)) for shape in shapes(cliques, sizes))


def count(columns: Sequence[Ints], sizes: Sequence[int], cliques: Sequence[Clique]) -> Ints:
    """All tables, one after the other. A row lies in exactly one cell of each, whatever the bins are."""
    total = np.zeros(cell_count(cliques, sizes), dtype=np.int64)
    count_into(total, columns, sizes, cliques)
    return total


def count_into(total: Ints, columns: Sequence[Ints], sizes: Sequence[int], cliques: Sequence[Clique]) -> None:
    """Add the tables of some rows to those of the rows before."""
    start = 0
    for clique, shape in zip(cliques, shapes(cliques, sizes), strict=True):
        place = np.ravel_multi_index([columns[column] for column in clique], shape)
        stop = start + int(np.prod(shape))
        total[start:stop] += np.bincount(place, minlength=stop - start)
        start = stop


def split(
    vector: npt.NDArray[np.generic], cliques: Sequence[Clique], sizes: Sequence[int]
) -> list[npt.NDArray[np.float64]]:
    """The inverse of `count`'s layout: each clique's table in its own shape."""
    tables, start = [], 0
    for shape in shapes(cliques, sizes):
        stop = start + int(np.prod(shape))
        tables.append(vector[start:stop].astype(np.float64).reshape(shape))
        start = stop
    return tables
