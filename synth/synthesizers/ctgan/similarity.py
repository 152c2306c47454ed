"""Fed-TGAN's weights (Zhao et al., arXiv 2108.07927, section 4.3): parties whose columns look like everybody's, and
that have many rows, count for more.

The comparison needs each party's counts, so the plan must gather them (and then each party's counts carry all of their
noise themselves). What is compared here are the released counts: for numeric columns their cells' mid-points.

NOTE[DIFF]: distances of numeric columns are taken between histograms, not between draws from fitted mixtures.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import jensenshannon
from scipy.stats import wasserstein_distance

from synth.encoding.cells import Cells
from synth.interface import Array

Floats = npt.NDArray[np.float64]


def similarity_weights(cells: Cells, by_party: Mapping[str, Array], sigma: float, rows: Mapping[str, int]) -> Floats:
    """One weight per party, in the order of `by_party`, summing to 1."""
    whole = cells.probabilities(np.sum(list(by_party.values()), axis=0), sigma * np.sqrt(len(by_party)))
    parts = [cells.probabilities(counts, sigma) for counts in by_party.values()]
    distances = np.array([[_distance(cells, name, part[name], whole[name]) for name in whole] for part in parts])
    return combine(distances, np.array([rows[party] for party in by_party], dtype=np.float64))


def combine(distances: Floats, rows: Floats) -> Floats:
    """Steps 2 to 5: distances [parties, columns] and row counts to weights."""
    totals = distances.sum(axis=0)
    normalised = np.where(totals > 0, distances / np.where(totals > 0, totals, 1.0), 1 / len(distances))
    dissimilar = normalised.sum(axis=1)
    closeness = (1 - dissimilar / dissimilar.sum()) * rows / rows.sum()
    weights: Floats = np.exp(closeness) / np.exp(closeness).sum()
    return weights


def _distance(cells: Cells, name: str, part: Floats, whole: Floats) -> float:
    if name not in cells.scales:
        return float(np.nan_to_num(jensenshannon(part, whole, base=2)))
    edges = cells.edges(name)
    middles = (edges[:-1] + edges[1:]) / 2
    part, whole = part[: len(middles)], whole[: len(middles)]
    if part.sum() <= 0 or whole.sum() <= 0:
        return 0.0
    return float(wasserstein_distance(middles, middles, part, whole))
