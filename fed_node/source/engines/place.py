"""Which cell of its column a row lies in, as expressions; what kinds of columns have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from fed_node.source.engines.expressions import Expression, any_of
from synth.encoding.contingency import Ints
from synth.encoding.fallbacks import Kind, Released, rule_for


class Place(Protocol):
    """`out` says whether the row is left out, for this column's sake."""

    @property
    def out(self) -> Expression: ...

    def bin(self, of_cell: Ints) -> Expression:
        """The bin of the row, where every cell of the column has one; of a row that is left out, anything."""
        ...


def with_rule(column: Released, flaws: Mapping[Kind, Expression], rule: str) -> Expression:
    """Whether some flaw of a cell is one that the rule takes care of. None of the expressions may be NULL."""
    return any_of([found for kind, found in flaws.items() if rule_for(column, kind) == rule])
