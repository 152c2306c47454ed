"""Two tables side by side, with what several metrics need of them worked out once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from synth.metrics.fidelity_pairs import Associations, associations
from synth.metrics.support import Support, support
from synth.metrics.tables import Table
from synth.schema import Schema


@dataclass(frozen=True, eq=False)
class Comparison:
    """`synthetic` stands in for the table under test; in a real-vs-real ceiling it is real, too."""

    real: Table
    synthetic: Table
    seed: int

    @property
    def schema(self) -> Schema:
        return self.real.schema

    @cached_property
    def associations(self) -> tuple[Associations, Associations]:
        return associations(self.real, self.schema), associations(self.synthetic, self.schema)

    @cached_property
    def support(self) -> Support | None:
        return support(self.real, self.synthetic, self.schema)

    def limited(self, rows: int) -> Comparison:
        """The same comparison on at most `rows` rows of each table; itself when both are small enough."""
        if max(self.real.rows, self.synthetic.rows) <= rows:
            return self
        rng = np.random.default_rng(self.seed)
        return Comparison(self.real.sample(rows, rng), self.synthetic.sample(rows, rng), self.seed)


def halves(real: Table, seed: int) -> Comparison | None:
    """Two random halves of the real rows: what a perfect synthesizer would score. None: fewer than two rows."""
    if real.rows < 2:
        return None
    order = np.random.default_rng(seed).permutation(real.rows)
    middle = real.rows // 2
    return Comparison(real.take(order[:middle]), real.take(order[middle:]), seed)
