"""Fed-TGAN's weights (Zhao et al., arXiv 2108.07927, section 4.3): parties whose columns look like everybody's, and
that have many rows, count for more.

The comparison needs each party's counts, so the plan must gather them (and then each party's counts carry all of their
noise themselves). What is compared here are the released counts: for numeric columns their cells' mid-points.

NOTE[DIFF]: distances of numeric columns are taken between histograms, not between draws from fitted mixtures.
NOTE[DIFF]: under the rigorous profile a weight stays within a quarter and four times the party's share of the declared
rows, and all are scaled so that they still sum to 1. The aggregator chooses the weights, and a sum in which one party
has nearly all of the weight is that party's update: every party sees all weights in the ask and refuses others. The
paper's own weights lie between 1/e and e times 1/parties; the faithful profile takes them as they are.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.spatial.distance import jensenshannon
from scipy.stats import wasserstein_distance

from synth.encoding.cells import Cells
from synth.interface import Array
from synth.plan import Plan

Floats = npt.NDArray[np.float64]
FURTHEST = 4.0  # a rigorous weight from the party's share of the rows, up or down
SMALLEST = 1e-3  # of any weight


def share_limits(plan: Plan) -> tuple[Floats, Floats]:
    """The least and the most that each party may weigh, in the plan's order."""
    rows = np.array([plan.share(party.name) for party in plan.parties])
    if plan.profile == "faithful":
        return np.full(len(rows), SMALLEST), np.ones(len(rows))
    return rows / FURTHEST, np.minimum(rows * FURTHEST, 1.0)


def party_shares(plan: Plan, found: Mapping[str, float]) -> Floats:
    """Every party's weight in the plan's order, summing to 1, from the weights of those whose counts were gathered.

    A party whose counts were not keeps its share of the rows, in case it comes back.
    """
    names = [party.name for party in plan.parties]
    scale = sum(plan.share(name) for name in found) / sum(found.values())
    weights = np.array([found[name] * scale if name in found else plan.share(name) for name in names])
    if plan.profile == "faithful":
        return weights
    low, high = share_limits(plan)

    def excess(factor: float) -> float:
        return float(np.clip(weights * factor, low, high).sum() - 1)

    limited: Floats = np.clip(weights * brentq(excess, 0.0, float((high / weights).max())), low, high)
    return limited


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
