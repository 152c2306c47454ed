"""Rows of a party that occur in the synthetic table, cell for cell, and how many would by coincidence.

The table travels as one 64-bit number a row. What coincidence explains is found from the synthetic table alone: rows
are put together anew from its columns, along the tree of its strongest dependencies, so that they are as likely as
real strangers to meet a synthetic row, and no likelier to be one. A table that repeats people's rows has far more
copies than that. Dependencies between three columns and more are not in the tree, so the excess errs on the high side.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from synth.encoding.bins import BinLimits, Bins, refine
from synth.encoding.cells import Cells
from synth.encoding.mixing import mixed
from synth.encoding.records import Records

LIMITS = BinLimits(numeric=20, discrete=64, rows=1.0, label_rows=1.0)  # of the bins that dependencies are seen in
NOBODY = -1

Numbers = NDArray[np.uint64]
Ints = NDArray[np.int64]


def row_numbers(cells: Cells, rows: Records) -> Numbers:
    """One number a row: equal rows have equal ones, different rows different ones but for a chance of 2^-64."""
    found = np.zeros(len(rows), dtype=np.uint64)
    for name in cells.slices:
        values = rows.columns[name]
        if name in cells.scales:
            scale = cells.scales[name]
            missing = np.isnan(values)
            steps = np.rint((np.where(missing, scale.lowest, values) - scale.lowest) / scale.step)
            values = np.where(missing, -1, steps).astype(np.int64)
        found = mixed(found ^ values.astype(np.int64).view(np.uint64))
    return found


def share_by_chance(cells: Cells, rows: Records, seed: int) -> float:
    """The share of strangers that would meet their like among the rows, those left out that they are made of."""
    bins = refine(cells, cells.count(rows), 0.0, LIMITS)
    sources = _sources(bins, rows, np.random.default_rng(seed))  # (columns, strangers)
    names = list(rows.columns)
    strangers = Records({name: rows.columns[name][source] for name, source in zip(names, sources, strict=True)})
    known, numbers = row_numbers(cells, rows), row_numbers(cells, strangers)
    distinct, like = np.unique(known, return_counts=True)
    place = np.minimum(np.searchsorted(distinct, numbers), len(distinct) - 1)
    met = np.where(distinct[place] == numbers, like[place], 0)
    own = np.sort(np.where(known[sources] == numbers, sources, NOBODY), axis=0)  # sources that are such a row
    first = np.vstack([own[:1] != NOBODY, (own[1:] != own[:-1]) & (own[1:] != NOBODY)])
    return float((met > first.sum(axis=0)).mean())


def _sources(bins: Bins, rows: Records, rng: np.random.Generator) -> Ints:
    """For every column of as many strangers, the row its value comes from: one that agrees on the bin of the column it
    hangs on."""
    names = list(rows.columns)
    index, sizes = bins.index(rows, names), [bins.size(name) for name in names]
    found = np.empty((len(names), len(rows)), dtype=np.int64)
    found[0] = rng.integers(0, len(rows), len(rows))
    for parent, child in _tree(index, sizes):
        order = np.argsort(index[parent], kind="stable")
        counts = np.bincount(index[parent], minlength=sizes[parent])
        starts = np.cumsum(counts) - counts
        asked = index[parent][found[parent]]
        found[child] = order[starts[asked] + rng.integers(0, counts[asked])]
    return found


def _tree(index: list[Ints], sizes: list[int]) -> list[tuple[int, int]]:
    """(parent, child), parents first: the maximum spanning tree of mutual information, from column 0 (Prim)."""
    strength = np.full((len(index), len(index)), -1.0)
    for left, right in combinations(range(len(index)), 2):
        table = np.bincount(index[left] * sizes[right] + index[right], minlength=sizes[left] * sizes[right])
        strength[left, right] = strength[right, left] = _information(table.reshape(sizes[left], sizes[right]))
    edges, inside = [], [0]
    while len(inside) < len(index):
        outside = [column for column in range(len(index)) if column not in inside]
        parent, child = max(((p, c) for p in inside for c in outside), key=lambda edge: strength[edge])
        edges.append((parent, child))
        inside.append(child)
    return edges


def _information(table: Ints) -> float:
    joint = table / table.sum()
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    filled = joint > 0
    return float((joint[filled] * np.log(joint[filled] / apart[filled])).sum())
