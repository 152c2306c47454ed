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
IMPOSSIBLE = 1e-12  # probability below which the tree rules something out
FORBIDDEN = -1e6  # logarithm for what the tree or a condition rules out


@dataclass(frozen=True, eq=False)
class Settled:
    """A tree, the distributions of counted pairs (columns rising), and the pull learned for them."""

    tree: Tree
    shares: Mapping[Clique, Floats]
    pull: Singles  # for every cell of every pair, one table after the other

    @classmethod
    def learned(cls, tree: Tree, shares: Mapping[Clique, Floats], rng: np.random.Generator) -> Settled:
        """The pull under which rows of the tree fit the tables."""
        rows = _stacked(tree.sample(LEARNING_ROWS, rng))
        chain = _Chain(tree, shares, np.zeros_like(_flat(shares)), rows, rng)
        for _ in range(SWEEPS_TO_LEARN):
            chain.sweep(towards=True, learning=True)
        return cls(tree, shares, chain.pull)

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
        shares = np.concatenate([table.ravel() for table in self.shares.values()])
        return {"pairs": contingency.pack_cliques(list(self.shares)), "shares": shares, "pull": self.pull}

    @classmethod
    def from_arrays(cls, tree: Tree, arrays: Arrays) -> Settled:
        pairs = contingency.unpack_cliques(arrays["pairs"])
        shares = contingency.split(arrays["shares"], pairs, _sizes(tree))
        return cls(tree, dict(zip(pairs, shares, strict=True)), arrays["pull"].astype(np.float32))


@dataclass(frozen=True, eq=False)
class _Lines:
    """A column beside every column that it is counted with: whose bins are lines, its own are places in a line."""

    others: Ints  # columns
    firsts: Ints  # of each, its first line
    cells: Ints  # [lines, bins of the column]: where in the flat vector of all tables

    @classmethod
    def of(cls, column: int, pairs: Sequence[Clique], sizes: Sequence[int], starts: Sequence[int]) -> _Lines:
        others, blocks = [], [np.zeros((0, sizes[column]), np.int64)]
        for pair, start in zip(pairs, starts, strict=True):
            if column in pair:
                table = start + np.arange(sizes[pair[0]] * sizes[pair[1]]).reshape(sizes[pair[0]], sizes[pair[1]])
                others.append(pair[1] if column == pair[0] else pair[0])
                blocks.append(table.T if column == pair[0] else table)
        firsts = np.cumsum([0, *(sizes[other] for other in others)])[:-1]
        return cls(np.array(others, np.int64), firsts, np.concatenate(blocks))

    def of_rows(self, rows: Ints) -> Ints:
        """[others, rows]"""
        found: Ints = rows[self.others] + self.firsts[:, None]
        return found


class _Chain:
    """Rows on their way; `rows` [columns, rows] are changed in place, and so is `pull`, all tables in one vector."""

    def __init__(
        self,
        tree: Tree,
        shares: Mapping[Clique, Floats],
        pull: Singles,
        rows: Ints,
        rng: np.random.Generator,
        given: Mapping[int, Floats] | None = None,
    ) -> None:
        self.rows, self.rng, self.pull = rows, rng, pull
        self.sizes, pairs = _sizes(tree), list(shares)
        self.factors = _factors(tree, self.sizes, given or {})
        self.wanted = rows.shape[1] * _flat(shares)
        counted = contingency.count(list(rows), self.sizes, pairs)
        self.held = counted.astype(np.float32)
        starts = np.cumsum([0, *(table.size for table in shares.values())])[:-1].tolist()
        self.lines = [_Lines.of(column, pairs, self.sizes, starts) for column in range(len(rows))]
        self.parts = min(max(rows.shape[1] // FEWEST_ROWS, 1), MOST_PARTS)

    def sweep(self, towards: bool, learning: bool) -> None:
        """Every column of every row drawn anew once. `towards`: the tables, and not by the pull alone."""
        for part in np.array_split(self.rng.permutation(self.rows.shape[1]), self.parts):
            if learning:
                self.pull += np.float32(LASTING) * _missing(self.wanted, self.held)
            rows = self.rows[:, part]
            for column in self.rng.permutation(len(rows)):
                self._draw(rows, int(column), towards)
            self.rows[:, part] = rows

    def _draw(self, rows: Ints, column: int, towards: bool) -> None:
        logs = np.zeros((rows.shape[1], self.sizes[column]), np.float32)
        for others, table in self.factors[column]:
            logs += table.take(_places(rows, others, self.sizes), axis=0)
        lines = self.lines[column]
        drawn, found = self.pull[lines.cells], lines.of_rows(rows)
        if towards:
            drawn += np.float32(FORCE * self.parts) * _missing(self.wanted[lines.cells], self.held[lines.cells])
        for line in found:
            logs += drawn.take(line, axis=0)  # thrice as fast as drawn[line]
        self._move(rows, column, _lucky(logs, self.rng), found)

    def _move(self, rows: Ints, column: int, drawn: Ints, lines: Ints) -> None:
        moved = np.flatnonzero(drawn != rows[column])
        cells, lines = self.lines[column].cells, lines[:, moved]
        np.subtract.at(self.held, cells[lines, rows[column, moved]].ravel(), np.float32(1))
        np.add.at(self.held, cells[lines, drawn[moved]].ravel(), np.float32(1))
        rows[column] = drawn


def _missing(wanted: Singles, held: Singles) -> Singles:
    """Of every cell, relative to what is wanted; at most 1 either way."""
    found: Singles = np.maximum((wanted - held) / (wanted + np.float32(SOFTENING)), np.float32(-1.0))
    return found


def _lucky(logs: Singles, rng: np.random.Generator) -> Ints:
    """A place in every line, by these logarithms of weights; never one without weight."""
    rising = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
    levels = rng.random(len(logs), dtype=np.float32) * rising[:, -1]
    found: Ints = (rising <= levels[:, None]).sum(axis=1)
    return found


def _factors(tree: Tree, sizes: Sequence[int], given: Mapping[int, Floats]) -> dict[int, list[tuple[Clique, Singles]]]:
    """What the tree, and what is given, say of a column: tables of logarithms, a line for every place of others."""
    found: dict[int, list[tuple[Clique, Singles]]] = {column: [] for column in range(len(sizes))}
    for column, weights in given.items():
        found[column].append(((), _logs(weights)[None, :]))
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
    logs = np.log(np.maximum(table, IMPOSSIBLE))
    return np.where(table > IMPOSSIBLE, logs, FORBIDDEN).astype(np.float32)


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


def _flat(shares: Mapping[Clique, Floats]) -> Singles:
    return np.concatenate([table.ravel() for table in shares.values()]).astype(np.float32)


def _stacked(drawn: Mapping[int, Ints]) -> Ints:
    return np.stack([drawn[column] for column in range(len(drawn))])
