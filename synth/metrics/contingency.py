"""How often two discrete columns take each pair of values, and the two associations that follow from it.

Only pairs that occur are kept: two columns of ten thousand labels each have a hundred million pairs, of which a table
of a million rows can fill at most one in a hundred.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth.metrics.fidelity import DENSE_CELLS
from synth.metrics.tables import IntArray


@dataclass(frozen=True, eq=False)
class Contingency:
    counts: IntArray  # (pairs,), all positive
    row_of: IntArray  # (pairs,), index into row_totals
    column_of: IntArray  # (pairs,), index into column_totals
    row_totals: IntArray
    column_totals: IntArray

    @staticmethod
    def of(rows: IntArray, columns: IntArray) -> Contingency:
        """From two columns of codes (0, 1, …)."""
        width = int(columns.max()) + 1
        cells = rows * width + columns
        if int(cells.max()) < DENSE_CELLS:
            dense = np.bincount(cells)
            pairs = np.flatnonzero(dense)
            counts = dense[pairs]
        else:
            pairs, counts = np.unique(cells, return_counts=True)
        _, row_of = np.unique(pairs // width, return_inverse=True)
        _, column_of = np.unique(pairs % width, return_inverse=True)
        row_totals, column_totals = (np.bincount(of, weights=counts).astype(np.int64) for of in (row_of, column_of))
        return Contingency(counts, row_of, column_of, row_totals, column_totals)

    @property
    def rows(self) -> int:
        """How many rows of the table were counted."""
        return int(self.counts.sum())

    def transposed(self) -> Contingency:
        return Contingency(self.counts, self.column_of, self.row_of, self.column_totals, self.row_totals)


def cramers_v(table: Contingency, corrected: bool = False) -> float:
    """sqrt((chi2 / n) / (smaller dimension - 1)), 0..1; 0 with a constant column. `corrected`: Bergsma (2013)."""
    n, r, c = table.rows, len(table.row_totals), len(table.column_totals)
    if min(r, c) < 2:
        return 0.0
    # chi2 / n = sum of n_ij^2 / (r_i c_j) - 1, where absent pairs add nothing
    expected = table.row_totals[table.row_of] * table.column_totals[table.column_of].astype(np.float64)
    phi2 = max(0.0, float((np.square(table.counts.astype(np.float64)) / expected).sum()) - 1.0)
    smaller = min(r, c) - 1.0
    if corrected:
        phi2 = max(0.0, phi2 - (r - 1) * (c - 1) / (n - 1))
        smaller = min(r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)) - 1.0
    return float(min(1.0, np.sqrt(phi2 / smaller))) if smaller > 0 else 0.0


def theils_u(table: Contingency) -> float:
    """(H(row) - H(row | column)) / H(row), 0..1; 1 for a constant row variable."""
    own = _entropy(table.row_totals)
    if own == 0.0:
        return 1.0
    return float(np.clip((own + _entropy(table.column_totals) - _entropy(table.counts)) / own, 0.0, 1.0))


def _entropy(counts: IntArray) -> float:
    p = counts / counts.sum()
    return float(-(p * np.log(p)).sum()) if len(p) > 1 else 0.0
