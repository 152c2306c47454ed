"""Rows to records: those of one person or window side by side, no more of them than the plan uses.

This happens when rows are read, before anything is computed of them. What becomes of one owner's rows depends on these
rows and the coin alone: an owner more, with a thousand rows, is as many records more as the plan says, nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from synth.encoding.cells import Cells
from synth.encoding.records import Records, Values
from synth.encoding.scales import Floats, scale_of
from synth.layout import LENGTH, NEIGHBOURS, Layout
from synth.schema import Boolean, Categorical

Ints = npt.NDArray[np.int64]
Coin = Callable[[Iterable[str], Iterable[int]], npt.NDArray[np.uint64]]  # luck for each owner's numbered thing
ABSENT = -1


@dataclass(frozen=True, eq=False)
class OwnedRows:
    """Rows, whose they are and when they were."""

    rows: Records
    names: list[str]  # of the owners, each once
    owner: Ints  # of every row, a place in `names`
    time: Floats | None
    fits: npt.NDArray[np.bool_]  # False: what does not fit leaves the row out


def gathered(layout: Layout, owned: OwnedRows, coin: Coin, grid: Cells | None = None) -> Records:
    """`grid` has the cells of the table's columns: rows without an order are numbered by them, and as they came where
    it is left out."""
    places = _pairs(owned) if layout.is_series else _windows(layout, owned, coin, grid)
    columns: dict[str, Values] = {name: owned.rows.columns[name][places[:, 0]] for name in layout.static}
    if layout.varies:
        columns[LENGTH] = (places != ABSENT).sum(axis=1).astype(np.float64)
    for name in layout.stepped:
        columns |= _side_by_side(layout, name, owned.rows.columns[name], places)
    return Records({name: columns[name] for name in layout.modelled.released})


def _pairs(owned: OwnedRows) -> Ints:
    """Every two neighbouring steps of a series. A step whose row does not fit is a gap, which nothing closes."""
    order = _in_order(owned, [owned.time])
    first, second = order[:-1], order[1:]
    joined = (owned.owner[first] == owned.owner[second]) & owned.fits[first] & owned.fits[second]
    places: Ints = np.stack([first, second], axis=1)[joined].reshape(-1, NEIGHBOURS)
    return places


def _windows(layout: Layout, owned: OwnedRows, coin: Coin, grid: Cells | None) -> Ints:
    """The rows of every window that is used, ABSENT where a window ends before its last step."""
    order = _in_order(owned, [owned.time]) if layout.ordered else _shuffled(owned, coin, grid)
    order = order[owned.fits[order]]
    sizes = np.bincount(owned.owner[order], minlength=len(owned.names))
    firsts = np.cumsum(sizes) - sizes
    whose, starts = _starts(layout, owned, sizes, coin)
    steps = starts[:, None] + np.arange(layout.said.length)
    inside = steps < sizes[whose][:, None]
    places = order[np.where(inside, firsts[whose][:, None] + steps, 0)] if len(order) else np.zeros_like(steps)
    return np.where(inside, places, ABSENT)


def _starts(layout: Layout, owned: OwnedRows, sizes: Ints, coin: Coin) -> tuple[Ints, Ints]:
    """Whose windows are used and where they start: of each owner's possible ones so many as the plan says, by coin."""
    possible = np.maximum((sizes - layout.said.shortest) // layout.stride + 1, 0) * (sizes >= layout.said.shortest)
    if not layout.ordered:
        possible = np.minimum(possible, 1)  # the coin has shuffled the rows already
    whose = np.repeat(np.arange(len(sizes)), possible)
    number = np.arange(len(whose)) - np.repeat(np.cumsum(possible) - possible, possible)
    if possible.max(initial=0) <= layout.said.max_windows:
        return whose, number * layout.stride
    luck = coin((owned.names[each] for each in whose), number.tolist())
    by_luck = np.lexsort((luck, whose))
    rank = np.arange(len(whose)) - np.repeat(np.cumsum(possible) - possible, possible)
    kept = by_luck[rank < layout.said.max_windows]
    return whose[kept], number[kept] * layout.stride


def _in_order(owned: OwnedRows, keys: Sequence[npt.NDArray[Any] | None]) -> Ints:
    """Rows by owner, then by the keys, then as they came."""
    known = [key for key in keys if key is not None]
    return np.lexsort((np.arange(len(owned.owner)), *reversed(known), owned.owner)).astype(np.int64)


def _shuffled(owned: OwnedRows, coin: Coin, grid: Cells | None) -> Ints:
    """The rows that fit, by owner, then by luck, which is drawn for a row's number among its owner's. Rows are numbered
    by their cells: two of an owner in the same cells are alike to whoever counts, so that tables whose rows come in no
    order (a database's) are counted as others are."""
    cells = [] if grid is None else list(grid.index(owned.rows).values())
    order = _in_order(owned, cells)
    order = order[owned.fits[order]]
    whose = owned.owner[order]
    sizes = np.bincount(whose, minlength=len(owned.names))
    number = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    luck = coin((owned.names[each] for each in whose), number.tolist())
    return order[np.lexsort((luck, whose))].astype(np.int64)


def _side_by_side(layout: Layout, name: str, values: Values, places: Ints) -> dict[str, Values]:
    column, how = layout.table.released[name], layout.encoding(name)
    if isinstance(column, Categorical | Boolean):
        codes = np.where(places == ABSENT, len(column.labels), values[places])
        return {layout.at(name, step): codes[:, step - 1] for step in range(1, layout.steps + 1)}
    levels = np.where(places == ABSENT, np.nan, values[places])  # (records, steps)
    found: dict[str, Values] = {}
    scale = scale_of(column)
    if (mean := layout.mean(name)) is not None:
        there = ~np.isnan(levels)
        middle = np.where(there, levels, 0.0).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
        means = scale.snap(np.where(there.any(axis=1), middle, np.nan))
        found[mean], levels = means, scale.round(levels - means[:, None])
    elif how == "increments":
        levels = np.column_stack([levels[:, :1], scale.round(np.diff(levels, axis=1))])
    return found | {layout.at(name, step): levels[:, step - 1] for step in range(1, layout.steps + 1)}
