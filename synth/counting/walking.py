"""Series of any length from what was counted of two neighbouring steps.

A series begins as a record drawn from the model, two steps. Then every column goes on by itself: from the bin that its
level lies in, to what followed levels of that bin. What columns have to do with each other is in the first step only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth.counting.drawing import Drawing
from synth.counting.tree import Tree, draw_places
from synth.encoding.records import Records, Values
from synth.encoding.scales import Floats, scale_of
from synth.layout import NEIGHBOURS, Layout
from synth.schema import Boolean, Categorical


@dataclass(frozen=True, eq=False)
class Walk:
    layout: Layout
    drawing: Drawing
    tree: Tree

    def series(self, rows: int, rng: np.random.Generator, where: dict[str, str]) -> Records:
        """Records of as many steps as the plan's sequences have."""
        begun = self.drawing.rows(self.tree, rows, rng, where)
        columns = dict(begun.columns)
        here = {name: columns[self.layout.at(name, 1)] for name in self.layout.stepped}
        for step in range(NEIGHBOURS, self.layout.said.length + 1):
            if step > NEIGHBOURS:
                columns |= {self.layout.at(name, step): self._onwards(name, level, rng) for name, level in here.items()}
            then = {name: columns[self.layout.at(name, step)] for name in here}
            here = {name: self._arrived(name, level, then[name]) for name, level in here.items()}
        return Records(columns)

    def _onwards(self, name: str, level: Values, rng: np.random.Generator) -> Values:
        """What follows the levels: labels, or increments."""
        now, then = self.layout.at(name, 1), self.layout.at(name, NEIGHBOURS)
        bins = self.drawing.bins
        places = bins.of(now)[bins.cells.index_of(now, level)]
        table = self._table(self.drawing.names.index(now), self.drawing.names.index(then))
        weights = self.drawing.weights[bins.cells.slices[then]]
        return bins.draw(then, draw_places(table, places, rng), weights, rng)

    def _arrived(self, name: str, level: Values, then: Values) -> Values:
        column = self.layout.table.released[name]
        if isinstance(column, Categorical | Boolean) or self.layout.encoding(name) == "level":
            return then
        scale = scale_of(column)
        arrived: Floats = np.clip(level + np.nan_to_num(then), scale.lowest, scale.highest).astype(np.float64)
        return arrived

    def _table(self, first: int, second: int) -> Floats:
        """The model's joint distribution of two columns."""
        for clique, belief in zip(self.tree.cliques, self.tree.beliefs, strict=True):
            if first in clique and second in clique:
                axes = tuple(axis for axis, column in enumerate(clique) if column not in (first, second))
                table: Floats = belief.sum(axis=axes)
                return table if clique.index(first) < clique.index(second) else table.T
        independent: Floats = np.outer(self._margin(first), self._margin(second))
        return independent

    def _margin(self, column: int) -> Floats:
        number = next(n for n, clique in enumerate(self.tree.cliques) if column in clique)
        clique = self.tree.cliques[number]
        margin: Floats = self.tree.beliefs[number].sum(axis=tuple(a for a, c in enumerate(clique) if c != column))
        shares: Floats = margin / margin.sum()
        return shares
