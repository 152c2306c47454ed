"""Rows of a tree, moved until every counted pair of columns fits: also those that the tree has no room for.

A junction tree grows with the cliques it must hold, so of the pairs that a plan counts, often only a small part is in
the model. What it leaves out is not neutral: columns that go together in reality and are independent in the model each
tell the target the same thing again, and what is learned from such rows is sure of too much. The rest of the pairs is
brought in when rows are drawn: one column of some rows at a time is drawn anew, given the row's other columns (Gibbs
sampling), from

    what the tree says  ×  exp(Σ over the column's tables of (pull + how much is missing in this cell now))

What is missing acts at once, so that rows keep to the tables more closely than independent draws could, and adds up to
a lasting `pull`, with which rows can be drawn where no table says what to expect: under conditions. PrivSyn (Zhang et
al., USENIX Security 2021) moves rows like this, by the tables alone; here the model stays below, with what it knows of
three and more columns and of what is impossible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from synth.counting.tree import Tree, axes_outside
from synth.encoding import contingency
from synth.encoding.contingency import Clique, Ints
from synth.encoding.scales import Floats
from synth.interface import Arrays

Singles = npt.NDArray[np.float32]  # half the memory and twice the speed of float64; enough for draws

FORCE = 0.06  # of a cell's relative error that is answered when all rows have been drawn anew once
LASTING = 0.05  # of the same that is added to the pull, each time some rows are drawn anew
FEWEST_ROWS, MOST_PARTS = 100, 50  # drawn anew at once; into which rows are parted for that
SWEEPS_TO_LEARN, SWEEPS_TO_DRAW = 6, 4
LEARNING_ROWS, BLOCK = 20_000, 50_000  # rows that the pull is learned on; that are settled together
SOFTENING = 2.0  # rows added to both sides of a cell's relative error
IMPOSSIBLE = 1e-12  # probability below which the tree is not asked how much
RAREST_LUCK = np.float32(1e-9)  # so that no luck makes up for what is impossible
FORBIDDEN = -1e6  # logarithm for what a condition rules out


@dataclass(frozen=True, eq=False)
class Settled:
    """A tree, the distributions of counted pairs (columns rising), and the pull learned for them."""

    tree: Tree
    shares: Mapping[Clique, Floats]
    pull: Mapping[Clique, Singles]

    @classmethod
    def learned(cls, tree: Tree, shares: Mapping[Clique, Floats], rng: np.random.Generator) -> Settled:
        """The pull under which rows of the tree fit the tables."""
        rows = _stacked(tree.sample(LEARNING_ROWS, rng))
        pull = {pair: np.zeros(table.shape, np.float32) for pair, table in shares.items()}
        chain = _Chain(tree, shares, pull, rows, rng)
        for _ in range(SWEEPS_TO_LEARN):
            chain.sweep(towards=True, learning=True)
        return cls(tree, shares, pull)

    def sample(self, rows: int, rng: np.random.Generator, given: Mapping[int, Floats] | None = None) -> dict[int, Ints]:
        drawn = _stacked(self.tree.sample(rows, rng, given))
        for block in np.array_split(rng.permutation(rows), max(-(-rows // BLOCK), 1)):
            part = drawn[:, block]
            chain = _Chain(self.tree, self.shares, self.pull, part, rng, given or {})
            for _ in range(SWEEPS_TO_DRAW):
                chain.sweep(towards=not given, learning=False)
            drawn[:, block] = part
        return dict(enumerate(drawn))

    def probability(self, given: Mapping[int, Floats]) -> float:
        return self.tree.probability(given)

    def to_arrays(self) -> Arrays:
        """All but the tree."""
        shares, pull = (np.concatenate([each.ravel() for each in t.values()]) for t in (self.shares, self.pull))
        return {"pairs": contingency.pack_cliques(list(self.shares)), "shares": shares, "pull": pull}

    @classmethod
    def from_arrays(cls, tree: Tree, arrays: Arrays) -> Settled:
        pairs, sizes = contingency.unpack_cliques(arrays["pairs"]), _sizes(tree)
        shares, pull = (contingency.split(arrays[name], pairs, sizes) for name in ("shares", "pull"))
        singles = [table.astype(np.float32) for table in pull]
        return cls(tree, dict(zip(pairs, shares, strict=True)), dict(zip(pairs, singles, strict=True)))


class _Chain:
    """Rows on their way; `rows` [columns, rows] are changed in place."""

    def __init__(
        self,
        tree: Tree,
        shares: Mapping[Clique, Floats],
        pull: Mapping[Clique, Singles],
        rows: Ints,
        rng: np.random.Generator,
        given: Mapping[int, Floats] | None = None,
    ) -> None:
        self.rows, self.rng, self.pull = rows, rng, pull
        self.sizes = _sizes(tree)
        self.factors = _factors(tree, self.sizes, given or {})
        count = rows.shape[1]
        self.wanted = {pair: (count * table).astype(np.float32) for pair, table in shares.items()}
        self.held = {pair: self._counted(rows, pair) for pair in shares}
        self.pairs = {column: [pair for pair in shares if column in pair] for column in range(len(rows))}
        self.parts = min(max(count // FEWEST_ROWS, 1), MOST_PARTS)

    def sweep(self, towards: bool, learning: bool) -> None:
        """Every column of every row drawn anew once. `towards`: the tables, and not by the pull alone."""
        for part in np.array_split(self.rng.permutation(self.rows.shape[1]), self.parts):
            if learning:
                for pair, pull in self.pull.items():
                    pull += np.float32(LASTING) * self._missing(pair)
            rows = self.rows[:, part]
            for column in self.rng.permutation(len(rows)):
                self._draw(rows, int(column), towards)
            self.rows[:, part] = rows

    def _draw(self, rows: Ints, column: int, towards: bool) -> None:
        logs = np.zeros((rows.shape[1], self.sizes[column]), np.float32)
        for others, table in self.factors[column]:
            logs += table[_places(rows, others, self.sizes)]
        for pair in self.pairs[column]:
            drawn = self.pull[pair]
            if towards:
                drawn = drawn + np.float32(FORCE * self.parts) * self._missing(pair)
            other = pair[1] if column == pair[0] else pair[0]
            logs += (drawn.T if column == pair[0] else drawn)[rows[other]]
        luck = -np.log(np.maximum(self.rng.standard_exponential(logs.shape, dtype=np.float32), RAREST_LUCK))
        self._move(rows, column, (logs + luck).argmax(axis=1))

    def _move(self, rows: Ints, column: int, drawn: Ints) -> None:
        moved = np.flatnonzero(drawn != rows[column])
        before = rows[:, moved]
        after = before.copy()
        after[column] = drawn[moved]
        for pair in self.pairs[column]:
            self.held[pair] += self._counted(after, pair) - self._counted(before, pair)
        rows[column] = drawn

    def _missing(self, pair: Clique) -> Singles:
        """Of every cell, relative to what is wanted; at most 1 either way."""
        wanted, held = self.wanted[pair], self.held[pair]
        found: Singles = np.maximum((wanted - held) / (wanted + np.float32(SOFTENING)), np.float32(-1.0))
        return found

    def _counted(self, rows: Ints, pair: Clique) -> Singles:
        shape = (self.sizes[pair[0]], self.sizes[pair[1]])
        found: Singles = np.bincount(_places(rows, pair, self.sizes), minlength=shape[0] * shape[1]).astype(np.float32)
        return found.reshape(shape)


def _factors(tree: Tree, sizes: Sequence[int], given: Mapping[int, Floats]) -> dict[int, list[tuple[Clique, Singles]]]:
    """What the tree, and what is given, say of a column: tables of logarithms, a line for every place of others."""
    found: dict[int, list[tuple[Clique, Singles]]] = {column: [] for column in range(len(sizes))}
    for column, weights in given.items():
        found[column].append(((), np.where(weights > 0, _logs(weights), FORBIDDEN)[None, :].astype(np.float32)))
    for clique, table in _parts(tree):
        for column in clique:
            axis = clique.index(column)
            lines = np.ascontiguousarray(np.moveaxis(table, axis, -1).reshape(-1, sizes[column]))
            found[column].append((clique[:axis] + clique[axis + 1 :], lines))
    return found


def _parts(tree: Tree) -> Iterator[tuple[Clique, Singles]]:
    """The tree's distribution is the product of its cliques over that of their separators."""
    for clique, parent, belief in zip(tree.cliques, tree.parents, tree.beliefs, strict=True):
        yield clique, _logs(belief / belief.sum())
        if parent >= 0:
            above = tree.cliques[parent]
            separator = tuple(column for column in clique if column in above)
            if separator:
                yield separator, -_logs(belief.sum(axis=axes_outside(clique, above)) / belief.sum())


def _logs(table: Floats) -> Singles:
    return np.log(np.maximum(table, IMPOSSIBLE)).astype(np.float32)


def _places(rows: Ints, columns: Sequence[int], sizes: Sequence[int]) -> Ints:
    """For every row, the number of its cell in a table over these columns."""
    found: Ints = np.zeros(rows.shape[1], dtype=np.int64)
    for column in columns:
        found = found * sizes[column] + rows[column]
    return found


def _sizes(tree: Tree) -> list[int]:
    known = {
        column: size
        for clique, belief in zip(tree.cliques, tree.beliefs, strict=True)
        for column, size in zip(clique, belief.shape, strict=True)
    }
    return [known[column] for column in range(len(known))]


def _stacked(drawn: Mapping[int, Ints]) -> Ints:
    return np.stack([drawn[column] for column in range(len(drawn))])
