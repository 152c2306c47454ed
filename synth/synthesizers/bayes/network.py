"""A Bayesian network over bins: what follows from what, with which probabilities, and rows drawn in that order.

Rows are drawn column by column from the first; within each group of rows whose parents agree the draws are stratified,
as for `marginals`. Conditions are handled by importance: a conditioned column is drawn from what is allowed, a row
weighs what that restriction cost it, and rows are drawn again by weight. Conditions on a column that enters first cost
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from synth.counting.tree import draw_places
from synth.encoding.contingency import Clique, Ints
from synth.encoding.scales import Floats

SPARE = 8  # rows drawn per row kept under conditions
PROBES = 20_000  # rows that tell whether conditions can be met at all


@dataclass(frozen=True)
class Node:
    """A column, its parents, and P(column | parents): axes in the order of `parents`, the column last."""

    column: int
    parents: Clique
    table: Floats

    def __post_init__(self) -> None:
        if not np.allclose(self.table.sum(axis=-1), 1.0):
            raise ValueError(f"the conditional table of column {self.column} does not add up to 1")


@dataclass(frozen=True)
class Network:
    """Nodes, each after its parents."""

    nodes: Sequence[Node]

    def sample(self, rows: int, rng: np.random.Generator, given: Mapping[int, Floats] | None = None) -> dict[int, Ints]:
        """The bin of every row in each column; `given` weights the bins of some columns (0 forbids a bin)."""
        if not given:
            return self._drawn(rows, rng, {})[0]
        found, weights = self._drawn(SPARE * rows, rng, given)
        levels = (np.arange(rows) + rng.random(rows)) / rows
        kept = np.searchsorted(np.cumsum(weights) / weights.sum(), levels, side="right")
        kept = rng.permutation(np.minimum(kept, len(weights) - 1))
        return {column: bins[kept] for column, bins in found.items()}

    def probability(self, given: Mapping[int, Floats]) -> float:
        """The weight of what is given, relative to nothing given; estimated, and 0 only where nothing was found."""
        return float(self._drawn(PROBES, np.random.default_rng(0), given)[1].mean())

    def _drawn(
        self, rows: int, rng: np.random.Generator, given: Mapping[int, Floats]
    ) -> tuple[dict[int, Ints], Floats]:
        found: dict[int, Ints] = {}
        weights = np.ones(rows)
        for node in self.nodes:
            lines = node.table.reshape(-1, node.table.shape[-1])
            group = np.zeros(rows, dtype=np.int64)
            if node.parents:
                group = np.ravel_multi_index([found[parent] for parent in node.parents], node.table.shape[:-1])
            if node.column in given:
                lines = lines * given[node.column]
                weights *= lines.sum(axis=1)[group]
            if lines.sum() <= 0:
                return {other.column: np.zeros(rows, dtype=np.int64) for other in self.nodes}, np.zeros(rows)
            found[node.column] = draw_places(lines, group, rng)
        return found, weights


def conditional(counts: Floats) -> Floats:
    """P(last axis | others) from counts: negatives are noise and become 0; where nothing is left, all are alike."""
    positive = np.maximum(counts, 0.0)
    totals = positive.sum(axis=-1, keepdims=True)
    even = np.full_like(positive, 1 / counts.shape[-1])
    found: Floats = np.divide(positive, totals, out=even, where=totals > 0)
    return found
