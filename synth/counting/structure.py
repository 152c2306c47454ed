"""From cliques to a junction tree, and how large its tables would be.

The tables of a graphical model are as large as the maximal cliques of its triangulated graph, so size, not the number
of pairs, limits what a model may contain. Columns are eliminated cheapest first (smallest table that the elimination
creates), which is greedy but exact for trees.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

from synth.encoding.contingency import Clique

BYTES_PER_CELL = 8


@dataclass(frozen=True)
class Structure:
    """Maximal cliques, each after its parent (-1 at a root); all list their columns in one common order."""

    sizes: tuple[int, ...]  # bins of every column
    cliques: list[Clique]
    parents: list[int]

    def ordered(self, columns: Iterable[int]) -> Clique:
        """Columns in the common order: long axes last, where arrays are fastest."""
        return tuple(sorted(columns, key=lambda column: (self.sizes[column], column)))

    def home(self, clique: Clique) -> int:
        """The smallest maximal clique that contains `clique`."""
        homes = [n for n, maximal in enumerate(self.cliques) if set(clique) <= set(maximal)]
        return min(homes, key=lambda number: prod(self.shape(number)))

    def shape(self, number: int) -> tuple[int, ...]:
        return tuple(self.sizes[column] for column in self.cliques[number])


def model_bytes(cliques: Iterable[Clique], sizes: Sequence[int]) -> int:
    """Memory of the model's tables."""
    return BYTES_PER_CELL * sum(prod(sizes[column] for column in clique) for clique in _eliminated(cliques, sizes))


def junction_tree(cliques: Iterable[Clique], sizes: Sequence[int]) -> Structure:
    """A tree over all columns; columns that no clique names stand alone."""
    maximal = sorted(tuple(sorted(clique)) for clique in _eliminated(cliques, sizes))
    order, parents = [0], [-1]
    # Prim's algorithm for the spanning tree of largest separators: for each clique outside, its best link into the tree
    links = {n: (len(set(maximal[0]) & set(maximal[n])), 0) for n in range(1, len(maximal))}
    while links:
        fresh = max(links, key=lambda n: (links[n][0], -n))
        shared, above = links.pop(fresh)
        parents.append(order.index(above) if shared else -1)
        order.append(fresh)
        for n, (most, _) in links.items():
            if (common := len(set(maximal[fresh]) & set(maximal[n]))) > most:
                links[n] = (common, fresh)
    structure = Structure(tuple(sizes), [], parents)
    structure.cliques.extend(structure.ordered(maximal[number]) for number in order)
    return structure


def _eliminated(cliques: Iterable[Clique], sizes: Sequence[int]) -> list[frozenset[int]]:
    """The maximal cliques of a triangulation."""
    near: dict[int, set[int]] = {column: set() for column in range(len(sizes))}
    for clique in cliques:
        for first, second in combinations(clique, 2):
            near[first].add(second)
            near[second].add(first)
    cost = {column: _table(column, near, sizes) for column in near}
    found: list[frozenset[int]] = []
    while cost:
        column = min(cost, key=lambda c: (cost[c], c))
        neighbours = near.pop(column)
        del cost[column]
        members = frozenset(neighbours | {column})
        if not any(members <= clique for clique in found):
            found.append(members)
        for other in neighbours:
            near[other] |= neighbours
            near[other] -= {other, column}
        for other in neighbours:
            cost[other] = _table(other, near, sizes)
    return found


def _table(column: int, near: dict[int, set[int]], sizes: Sequence[int]) -> int:
    return sizes[column] * prod(sizes[other] for other in near[column])
