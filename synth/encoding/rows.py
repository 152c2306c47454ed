"""A party's rows, wherever they are, as far as a release needs them: counts add up, so nobody needs all rows at once.

`Records` hold their rows. A party whose table does not fit into memory hands over another kind, which reads its rows
piece by piece or has them counted where they live (fed_node/source). Whatever kind it is, the counts are the same to
the unit, and the order of rows is nobody's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from synth.encoding import contingency
from synth.encoding.contingency import Clique, Ints

if TYPE_CHECKING:
    from synth.encoding.bins import Bins
    from synth.encoding.cells import Cells
    from synth.encoding.records import Records

ROWS_AT_ONCE = 1 << 17


class Rows(ABC):
    @abstractmethod
    def pieces(self) -> Iterator[Records]:
        """All rows, some at a time; one piece at least."""

    @abstractmethod
    def at_hand(self) -> Records:
        """All rows by number, on disk where memory is not enough: for families that draw single rows."""

    def histograms(self, cells: Cells) -> Ints:
        """The histograms of all columns, one after the other."""
        total = np.zeros(cells.size, dtype=np.int64)
        for piece in self.pieces():
            total += cells.count(piece)
        return total

    def tables(self, bins: Bins, names: list[str], cliques: Sequence[Clique]) -> Ints:
        """The contingency tables of the cliques, which are places in `names`, one after the other."""
        sizes = [bins.size(name) for name in names]
        total = np.zeros(contingency.cell_count(cliques, sizes), dtype=np.int64)
        for piece in self.pieces():
            contingency.count_into(total, bins.index(piece, names), sizes, cliques)
        return total
