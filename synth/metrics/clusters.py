"""Log-cluster: cluster both tables together; every cluster should hold its fair share of real rows.

As in the Bayesian network thesis (with the square its printed formula lost): principal components that keep 85 % of
the variance, k-means for 2 to 20 clusters, base-2 logarithm of the mean squared deviation, minimum over the counts.
"""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA

from synth.metrics.spaces import LabelCodes
from synth.metrics.tables import FloatArray, IntArray, Rows, table_of
from synth.schema import Schema

CLUSTER_COUNTS = range(2, 21)
VARIANCE_KEPT = 0.85
FLOOR = -40.0
"""Given for two tables that fill every cluster alike, where the logarithm would be minus infinity."""


def log_cluster(real: Rows, synthetic: Rows, schema: Schema, *, seed: int = 0) -> float | None:
    """Base-2 logarithm, FLOOR..0; lower is better. None: fewer distinct rows than two clusters need."""
    left, right = table_of(real, schema), table_of(synthetic, schema)
    space = LabelCodes.fit(left)
    points = np.vstack([space.points(left), space.points(right)])
    points = points[:, np.ptp(points, axis=0) > 0]
    distinct = len(np.unique(points, axis=0)) if points.shape[1] else 1
    if distinct < 2:
        return None
    components = PCA(n_components=VARIANCE_KEPT, svd_solver="full", random_state=seed).fit_transform(points)
    is_real = np.arange(len(points)) < left.rows
    counts = [k for k in CLUSTER_COUNTS if k <= distinct]
    return min(_deviation(components, is_real.astype(np.int64), k, seed) for k in counts)


def _deviation(points: FloatArray, is_real: IntArray, clusters: int, seed: int) -> float:
    labels = KMeans(clusters, random_state=seed).fit_predict(points)
    sizes = np.bincount(labels, minlength=clusters)
    real = np.bincount(labels, weights=is_real, minlength=clusters)
    mean = float(np.mean(np.square(real[sizes > 0] / sizes[sizes > 0] - is_real.mean())))
    return max(FLOOR, float(np.log2(mean))) if mean > 0 else FLOOR
