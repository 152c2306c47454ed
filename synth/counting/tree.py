"""Rows from a calibrated junction tree: seeded, conditional, and with little sampling noise.

A fitted model is a tree of cliques with their marginals. Rows are drawn clique by clique from the root; within each
group of rows that agree on the separator the uniform draws are stratified, so the counts of the table drawn are those
of the model up to rounding. Independent draws instead would add the sampling noise of a second survey.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from synth.encoding.contingency import Clique, Ints
from synth.encoding.scales import Floats


@dataclass(frozen=True)
class Tree:
    """Cliques, each after its parent (-1 at a root), with tables proportional to their joint distribution. All cliques
    list their columns in one common order."""

    cliques: Sequence[Clique]
    parents: Sequence[int]
    beliefs: Sequence[Floats]

    def sample(self, rows: int, rng: np.random.Generator, given: Mapping[int, Floats] | None = None) -> dict[int, Ints]:
        """The bin of every row in each column; `given` weights the bins of some columns (0 forbids a bin)."""
        found: dict[int, Ints] = {}
        for clique, table in zip(self.cliques, self._conditionals(given or {}), strict=True):
            known = [column for column in clique if column in found]
            fresh = [column for column in clique if column not in found]
            table = np.transpose(table, [clique.index(column) for column in known + fresh])
            shape = table.shape
            group = np.zeros(rows, dtype=np.int64)
            if known:
                group = np.ravel_multi_index([found[column] for column in known], shape[: len(known)])
            drawn = draw_places(table.reshape(int(np.prod(shape[: len(known)])), -1), group, rng)
            found |= dict(zip(fresh, np.unravel_index(drawn, shape[len(known) :]), strict=True))
        return found

    def probability(self, given: Mapping[int, Floats]) -> float:
        """The weight of what is given, relative to nothing given."""
        roots = [number for number, parent in enumerate(self.parents) if parent < 0]
        return float(np.prod([self._conditionals(given)[n].sum() / self.beliefs[n].sum() for n in roots]))

    def _conditionals(self, given: Mapping[int, Floats]) -> list[Floats]:
        """Per clique a table whose lines, at fixed separator, are proportional to P(rest | separator, given)."""
        tables = []
        weighted: set[int] = set()
        for clique, parent, belief in zip(self.cliques, self.parents, self.beliefs, strict=True):
            table = belief.copy()
            if parent >= 0:
                separator = table.sum(axis=axes_outside(clique, self.cliques[parent]), keepdims=True)
                table = np.divide(table, separator, out=np.zeros_like(table), where=separator > 0)
            for column in given.keys() & set(clique) - weighted:
                weighted.add(column)
                table *= np.expand_dims(given[column], axes_outside(clique, (column,)))
            tables.append(table)
        for number in range(len(tables) - 1, -1, -1):  # what is given travels up the tree
            if given and (parent := self.parents[number]) >= 0:
                clique, above = self.cliques[number], self.cliques[parent]
                message = tables[number].sum(axis=axes_outside(clique, above))
                tables[parent] *= np.expand_dims(message, axes_outside(above, clique))
        return tables


def axes_outside(clique: Clique, other: Clique) -> tuple[int, ...]:
    """The axes of a clique's table whose columns are not in the other clique."""
    return tuple(axis for axis, column in enumerate(clique) if column not in other)


def draw_places(weights: Floats, group: Ints, rng: np.random.Generator) -> Ints:
    """For every row a place in the line of `weights` that its group names; draws are stratified within each group."""
    rows, places = len(group), weights.shape[1]
    order = np.lexsort((rng.random(rows), group))
    sizes = np.bincount(group, minlength=len(weights))
    rank = np.arange(rows) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    level = (rank + rng.random(rows)) / np.repeat(sizes, sizes)
    totals = weights.sum(axis=1, keepdims=True)
    usual = np.tile(weights.sum(axis=0) / weights.sum(), (len(weights), 1))  # for a group of vanishing probability
    shares = np.divide(weights, totals, out=usual, where=totals > 0)
    # One search over all lines: line g holds its cumulative shares plus g, so the whole is sorted.
    ladder = np.minimum(np.cumsum(shares, axis=1), 1.0) + np.arange(len(weights))[:, None]
    line = group[order]
    place = np.searchsorted(ladder.ravel(), line + level, side="right") - line * places
    drawn = np.empty(rows, dtype=np.int64)
    drawn[order] = np.minimum(place, _last_possible(shares)[line])
    return drawn


def _last_possible(shares: Floats) -> Ints:
    """Per line the last place of positive weight: rounding must not carry a draw beyond it."""
    found: Ints = shares.shape[1] - 1 - np.argmax(shares[:, ::-1] > 0, axis=1)
    return found
