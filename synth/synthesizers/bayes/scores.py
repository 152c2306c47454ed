"""What parents tell about a column, and what it costs to count them with it: the fitness of a network under noise.

The thesis adds up pairwise mutual information, which always fills all places for parents, with near copies of each
other, however large the table. Here a family is worth the rows' gain in log-likelihood, n·I(column; parents), less what
the noise of its table will cost. The information is that of rows drawn from a graphical model of the released pairs, in
which a parent that repeats another adds nothing: post-processing, and as many rows as precision needs. A
discrete target tells little about most columns and yet is what the table will be used for: it is their parent anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, combinations
from math import prod

import numpy as np

from synth.encoding import contingency
from synth.encoding.contingency import Clique, Ints
from synth.encoding.scales import Floats
from synth.synthesizers.bayes.genetics import Individual

CANDIDATES = 8  # most columns considered as parents of one, the most telling first
LEAST = 1e-12  # probability


@dataclass(frozen=True)
class FamilyScores:
    """Scores of families, computed when first asked for."""

    drawn: Sequence[Ints]  # bins of the drawn rows, by column
    sizes: Sequence[int]  # bins, by column
    rows: float  # that the real tables hold
    variance: float  # of the noise of a count in the families' tables to come
    most_parents: int
    most_cells: int
    target: int | None  # enters first and is a parent of every column
    _scores: dict[tuple[int, Clique], float] = field(default_factory=dict)
    _best: dict[tuple[int, frozenset[int]], Clique] = field(default_factory=dict)

    def fitness(self, individual: Individual) -> float:
        return sum(self.score(child, above) for child, above in self.parents(individual).items())

    def parents(self, individual: Individual) -> dict[int, Clique]:
        """The best parents that the individual's order allows, by column in that order."""
        found: dict[int, Clique] = {} if self.target is None else {self.target: ()}
        for child in individual[0]:
            if child not in found:
                found[child] = self._among(child, self.candidates[child].intersection(found))
        return found

    def score(self, child: int, parents: Clique) -> float:
        """Nats gained over no parents at all."""
        if not parents:
            return 0.0
        if (child, parents) not in self._scores:
            family = (*parents, child)
            affordable = prod(self.sizes[column] for column in family) <= self.most_cells
            self._scores[child, parents] = self._worth(family) if affordable else -np.inf
        return self._scores[child, parents]

    @cached_property
    def candidates(self) -> list[frozenset[int]]:
        """For every column those that tell most about it."""
        told = np.zeros((len(self.sizes), len(self.sizes)))
        for first, second in combinations(range(len(self.sizes)), 2):
            told[first, second] = told[second, first] = information(self._joint((first, second)))
        np.fill_diagonal(told, -1.0)
        if self.target is not None:
            told[:, self.target] = np.inf
        ranked = np.argsort(-told, axis=1, kind="stable")[:, : min(CANDIDATES, len(self.sizes) - 1)].tolist()
        return [frozenset(line) - {child} for child, line in enumerate(ranked)]

    def _among(self, child: int, earlier: frozenset[int]) -> Clique:
        if (child, earlier) not in self._best:
            sizes = range(self.most_parents + 1)
            sets = list(chain.from_iterable(combinations(sorted(earlier), size) for size in sizes))
            aimed = [one for one in sets if self.target in one and self.score(child, one) > -np.inf]
            self._best[child, earlier] = max(aimed or sets, key=lambda one: self.score(child, one))
        return self._best[child, earlier]

    def _worth(self, family: Clique) -> float:
        joint = self._joint(family)
        counts = self.rows * joint
        # A cell of c rows, known with variance v and sampling error c, is off by a share of √(v + c) / c of itself,
        # which costs half the square of that share, in nats per row; no cell costs more than leaving it out.
        cost = 0.5 * np.minimum(counts, (self.variance + counts) / np.maximum(counts, LEAST)).sum()
        return self.rows * information(joint) - float(cost)

    def _joint(self, family: Clique) -> Floats:
        counts = contingency.count(self.drawn, self.sizes, [family])
        joint: Floats = contingency.split(counts, [family], self.sizes)[0] / counts.sum()
        return joint


def information(joint: Floats) -> float:
    """Mutual information of the last axis of a joint distribution with all others together, in nats."""
    alone = joint.sum(axis=tuple(range(joint.ndim - 1)), keepdims=True)
    rest = joint.sum(axis=-1, keepdims=True)
    positive = joint > LEAST
    ratio = np.divide(joint, alone * rest, out=np.ones_like(joint), where=positive)
    return max(float((joint * np.log(ratio, out=np.zeros_like(joint), where=positive)).sum()), 0.0)
