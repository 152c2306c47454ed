"""All that was released, in one place: which cliques it supports, and the model that explains it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from synth.counting.estimates import Measurement, combined_columns, combined_pairs, combined_tables
from synth.counting.fitting import Fit, Fitter, Zeros
from synth.counting.relations import Mask, relations
from synth.counting.selection import ranked, select
from synth.counting.settling import Settled
from synth.counting.structure import junction_tree
from synth.counting.tree import Tree
from synth.encoding import contingency
from synth.encoding.contingency import Clique

MEGABYTE = 2**20
OWN_LUCK = [20261118, 1]  # a fit takes no seed, so that a resumed run ends in the same model
MODELLED_ROWS = 200_000  # drawn to see what the model says of pairs that it leaves out


@dataclass(frozen=True)
class Evidence:
    """Noisy counts of every column and of some cliques, and what is known to be impossible."""

    columns: list[Measurement]  # by number
    tables: dict[Clique, Measurement]
    zeros: Sequence[Zeros]

    @classmethod
    def of(
        cls, histograms: Sequence[Measurement], tables: Sequence[Measurement], zeros: Sequence[Zeros] = ()
    ) -> Evidence:
        joined = combined_tables(tables)
        return cls(combined_columns(histograms, joined.values()), joined, zeros)

    @cached_property
    def pairs(self) -> dict[Clique, Measurement]:
        """Every pair that some table holds, from all of these tables."""
        return combined_pairs(self.tables.values())

    def select(self, target: int | None, model_size_mb: float) -> list[Clique]:
        """The cliques to model, worthiest first (after those that constraints need), within the size limit."""
        required = [zero.clique for zero in self.zeros]
        return select(self.columns, self.pairs, target, model_size_mb * MEGABYTE, required)

    def pairs_by_surprise(self) -> list[Clique]:
        """All counted pairs, those first that noise explains least."""
        return ranked(self.columns, self.pairs)

    def fit(self, cliques: Sequence[Clique], iterations: int) -> Fit:
        """The model over these cliques, from all tables that it can hold without growing."""
        structure = junction_tree(cliques, [column.counts.size for column in self.columns])
        known = {pair for clique in cliques for pair in combinations(sorted(clique), 2)}
        held = [table for clique, table in self.tables.items() if known.issuperset(combinations(clique, 2))]
        found = [*self.columns, *held]
        zeros = [zero for zero in self.zeros if zero.clique in cliques]
        rows = max(float(np.mean([column.counts.sum() for column in self.columns])), 1.0)
        return Fitter(structure, found, zeros).fit(rows, iterations)

    def settled(self, tree: Tree) -> Settled | None:
        """The tree, with what it leaves out of the counted pairs; None if it has room for all of them."""
        held = {pair for clique in tree.cliques for pair in combinations(sorted(clique), 2)}
        if held.issuperset(self.pairs):
            return None
        rng = np.random.default_rng(OWN_LUCK)
        rows = tree.sample(MODELLED_ROWS, rng)
        sizes = [column.counts.size for column in self.columns]
        pairs = list(self.pairs)
        counts = contingency.count([rows[column] for column in range(len(sizes))], sizes, pairs)
        modelled = dict(zip(pairs, contingency.split(counts / MODELLED_ROWS, pairs, sizes), strict=True))
        possible: dict[Clique, Mask] = {}
        for zero in self.zeros:
            pair = tuple(sorted(zero.clique))
            possible[pair] = possible.get(pair, True) & np.transpose(zero.possible, np.argsort(zero.clique))
        return Settled.learned(tree, relations(self.pairs, modelled, possible, held.__contains__), rng)
