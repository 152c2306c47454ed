"""Numbers and times between the bounds of their cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import ibis
import numpy as np

from fed_node.source.engines.dialects import Dialect
from fed_node.source.engines.expressions import FEW, Expression, exactly, tree
from synth.encoding.contingency import Ints


@dataclass(frozen=True, eq=False)
class Compared:
    """A place (see `place`). Cell k + 1 begins at bound k; `empty` rows lie in the missing cell."""

    dialect: Dialect
    value: Expression
    dtype: str
    bounds: Sequence[str]
    empty: Expression
    out: Expression

    def bin(self, of_cell: Ints) -> Expression:
        ordered = of_cell[: len(self.bounds) + 1]
        ends = np.flatnonzero(np.diff(ordered))
        leaves = [int(ordered[0]), *map(int, ordered[ends + 1])]
        found = self._between([self.bounds[int(end)] for end in ends], leaves)
        return ibis.ifelse(self.empty, int(of_cell[-1]), found)

    def _between(self, bounds: Sequence[str], leaves: list[int]) -> Expression:
        if len(bounds) <= FEW:
            return tree(self.value, [exactly(bound, self.dtype) for bound in bounds], leaves)
        reached = self.dialect.reached(self.value, self.dtype, bounds)
        if leaves == list(range(len(leaves))):
            return reached
        return tree(reached, list(range(1, len(leaves))), leaves)
