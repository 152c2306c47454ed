"""Maximum mean discrepancy: one number for how far two clouds of points are apart, correlations and all.

The unbiased estimator of the federated WAE and FedSTDG papers, so equal populations score around 0 and may score
slightly below. Their kernel is the inverse multiquadric κ / (κ + |a - b|²) with κ = 2 · dimensions · variance of the
real points.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from synth.metrics.spaces import Mixed
from synth.metrics.tables import FloatArray, Rows, table_of
from synth.schema import Schema

POINTS_PER_SIDE = 1_000
REPETITIONS = 10

Kernel = Callable[[FloatArray], FloatArray]  # squared distances to similarities


def mmd(real: Rows, synthetic: Rows, schema: Schema, *, seed: int = 0) -> float | None:
    """MMD² of rows as points (`spaces.Mixed`), inverse multiquadric kernel; 0 is best. None: fewer than two rows."""
    left, right = table_of(real, schema), table_of(synthetic, schema)
    space = Mixed.fit(left)
    rng = np.random.default_rng(seed)
    rows = POINTS_PER_SIDE * REPETITIONS  # no more rows are ever looked at
    return mmd_of_points(space.points(left.sample(rows, rng)), space.points(right.sample(rows, rng)), seed=seed)


def mmd_of_points(real: FloatArray, synthetic: FloatArray, *, seed: int = 0) -> float | None:
    """Mean over ten subsamples of 1,000 points per side (all points at once where there are no more)."""
    if min(len(real), len(synthetic)) < 2:
        return None
    kernel = inverse_multiquadric(real)
    rng = np.random.default_rng(seed)
    repetitions = 1 if max(len(real), len(synthetic)) <= POINTS_PER_SIDE else REPETITIONS
    return float(np.mean([_estimate(_some(real, rng), _some(synthetic, rng), kernel) for _ in range(repetitions)]))


def inverse_multiquadric(real: FloatArray) -> Kernel:
    kappa = 2.0 * real.shape[1] * float(real.var(axis=0).mean()) or 1.0
    return lambda squared: kappa / (kappa + squared)


def _some(points: FloatArray, rng: np.random.Generator) -> FloatArray:
    if len(points) <= POINTS_PER_SIDE:
        return points
    return points[rng.choice(len(points), POINTS_PER_SIDE, replace=False)]


def _estimate(left: FloatArray, right: FloatArray, kernel: Kernel) -> float:
    within = [_mean_off_diagonal(kernel(_squared_distances(points, points))) for points in (left, right)]
    return float(sum(within) - 2.0 * kernel(_squared_distances(left, right)).mean())


def _mean_off_diagonal(values: FloatArray) -> float:
    n = len(values)
    return float((values.sum() - np.trace(values)) / (n * (n - 1)))


def _squared_distances(left: FloatArray, right: FloatArray) -> FloatArray:
    norms = np.square(left).sum(axis=1)[:, None] + np.square(right).sum(axis=1)[None, :]
    squared: FloatArray = np.maximum(norms - 2.0 * (left @ right.T), 0.0)
    return squared
