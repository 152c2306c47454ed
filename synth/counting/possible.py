"""The plan's constraints in the language of bins: combinations the model must give no probability.

A combination of bins is forbidden only if every row in it would break a constraint. Labels that a constraint names are
therefore kept in bins of their own; what bins cannot express is left to the check of the rows drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from synth.constraints import Between, Constraint, Impossible, Mask, Order, Total, coarsest, instants, matches
from synth.counting.fitting import Zeros
from synth.encoding.bins import Bins
from synth.encoding.cells import Cells
from synth.encoding.contingency import Ints
from synth.encoding.scales import Floats
from synth.totals import total_range


def labels_apart(constraints: Sequence[Constraint], cells: Cells) -> dict[str, Ints]:
    """For every discrete column that constraints name labels of: a group per label; within one, labels are treated
    alike by all constraints."""
    groups: dict[str, Ints] = {}
    for one in constraints:
        if isinstance(one, Impossible):
            for name in one.combination.keys() & cells.schema.discrete.keys():
                named = _cells_inside(one.combination[name], name, cells)
                before = groups.get(name, np.zeros(len(named), dtype=np.int64))
                groups[name] = np.unique(2 * before + named, return_inverse=True)[1].astype(np.int64)
    return groups


def zeros(constraints: Sequence[Constraint], bins: Bins, names: list[str]) -> list[Zeros]:
    """Tables of what is possible, over the modelled columns (`names`, by number)."""
    found = []
    for one in constraints:
        if isinstance(one, Impossible) and one.combination.keys() <= set(names):
            found.append(_impossible(one, bins, names))
        elif isinstance(one, Order):
            found += [_ordered(pair, bins, names) for pair in combinations(one.columns, 2)]
        elif isinstance(one, Total) and one.column is None and len(one.terms) == 2 and set(one.terms) <= set(names):
            found.append(_bounded(one, bins, names))
    return found


def _impossible(one: Impossible, bins: Bins, names: list[str]) -> Zeros:
    columns = sorted(one.combination, key=names.index)
    forbidden = np.ones((), dtype=bool)
    for name in columns:
        inside = _cells_inside(one.combination[name], name, bins.cells)
        wholly = bins.fold(name, (~inside).astype(np.float64)) == 0
        forbidden = np.logical_and.outer(forbidden, wholly)
    return Zeros(tuple(names.index(name) for name in columns), ~forbidden)


def _ordered(pair: tuple[str, str], bins: Bins, names: list[str]) -> Zeros:
    """A bin of the first column that begins above the end of a bin of the second cannot go with it."""
    low, high = _bounds(pair[0], bins)[0], _bounds(pair[1], bins)[1]
    unit = coarsest(pair, bins.cells.schema) or 1.0
    if unit != 1.0:
        low, high = np.floor(low / unit), np.floor(high / unit)
    possible = ~(low[:, None] > high[None, :])  # comparisons with a missing bin's NaN are False: always possible
    return Zeros((names.index(pair[0]), names.index(pair[1])), possible)


def _bounded(one: Total, bins: Bins, names: list[str]) -> Zeros:
    """Two bins cannot go together if every total of their values is out of bounds."""
    ends = {name: _bounds(name, bins) for name in one.terms}
    lows, highs = ({name: both[side] for name, both in ends.items()} for side in (0, 1))
    least, largest = total_range(one, lows, highs, bins.cells.schema)
    possible = ~((least > one.high) | (largest < one.low))  # always with a missing bin's NaN
    first, second = (names.index(name) for name in one.terms)
    return Zeros((first, second), possible) if first < second else Zeros((second, first), possible.T)


def _bounds(name: str, bins: Bins) -> tuple[Floats, Floats]:
    """Lowest and highest instant of every bin; NaN for the bin of missing cells."""
    lowest, highest = (instants(name, bins.cells.schema, values) for values in _cell_values(name, bins.cells))
    members = [bins.of(name) == number for number in range(bins.size(name))]
    return np.array([lowest[m].min() for m in members]), np.array([highest[m].max() for m in members])


def _cells_inside(part: list[str] | Between, name: str, cells: Cells) -> Mask:
    """Cells of a column all of whose values match."""
    if isinstance(part, Between):
        lowest, highest = _cell_values(name, cells)
        return part.holds(lowest) & part.holds(highest)
    size = cells.slices[name].stop - cells.slices[name].start
    return matches(part, name, np.arange(size, dtype=np.int64), cells.schema)


def _cell_values(name: str, cells: Cells) -> tuple[Floats, Floats]:
    """Lowest and highest value of every cell of a numeric column; NaN for the cell of missing values."""
    edges, half = cells.edges(name), cells.scales[name].step / 2
    missing = [np.nan] * int(cells.schema.numeric[name].missing)
    return np.append(edges[:-1] + half, missing), np.append(edges[1:] - half, missing)
