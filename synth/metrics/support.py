"""Do the synthetic rows lie where real rows lie (precision, density), and everywhere they lie (recall, coverage)?

Each row has a ball that reaches to its k-th nearest neighbour in its own table (k = 5, as in the library the FedSTDG
paper used). NOTE[DIFF]: a point *on* the ball counts as inside, where that library asks strictly inside: tables
of categories have rows with five identical twins, whose ball has radius 0 and would otherwise not even hold a copy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances_chunked
from sklearn.neighbors import NearestNeighbors

from synth.metrics.spaces import Mixed
from synth.metrics.tables import FloatArray, Rows, table_of
from synth.schema import Schema

NEIGHBOURS = 5
ROUNDING = 1e-6
"""Distances of equal rows come out as rounding errors of this order, not as 0."""


@dataclass(frozen=True)
class Support:
    """All are shares of rows, 1 is best, except density, whose value for equal populations is about 1."""

    precision: float
    recall: float
    density: float
    coverage: float


def support(real: Rows, synthetic: Rows, schema: Schema, *, neighbours: int = NEIGHBOURS) -> Support | None:
    """None: a table has no more rows than neighbours. Quadratic in rows: pass a sample."""
    left, right = table_of(real, schema), table_of(synthetic, schema)
    if min(left.rows, right.rows) <= neighbours:
        return None
    space = Mixed.fit(left)
    return support_of_points(space.points(left), space.points(right), neighbours)


def support_of_points(real: FloatArray, synthetic: FloatArray, neighbours: int = NEIGHBOURS) -> Support:
    radius_real = _radius(real, neighbours) + ROUNDING
    radius_synthetic = _radius(synthetic, neighbours) + ROUNDING
    in_real_balls = np.zeros(len(synthetic), dtype=np.int64)
    recalled: list[NDArray[np.bool_]] = []
    covered: list[NDArray[np.bool_]] = []
    start = 0
    for distances in pairwise_distances_chunked(real, synthetic, working_memory=128):
        radius = radius_real[start : start + len(distances), None]
        start += len(distances)
        in_real_balls += (distances <= radius).sum(axis=0)
        covered.append(distances.min(axis=1) <= radius[:, 0])
        recalled.append((distances <= radius_synthetic[None, :]).any(axis=1))
    return Support(
        precision=float((in_real_balls > 0).mean()),
        recall=float(np.concatenate(recalled).mean()),
        density=float(in_real_balls.mean() / neighbours),
        coverage=float(np.concatenate(covered).mean()),
    )


def _radius(points: FloatArray, neighbours: int) -> FloatArray:
    """Distance to the k-th nearest other point of the same table."""
    index = NearestNeighbors(n_neighbors=neighbours, algorithm="brute").fit(points)
    distances: FloatArray = index.kneighbors()[0]
    return distances[:, -1]
