"""Metrics that look at whole rows: propensity, clusters, support, kernel."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.tree import DecisionTreeClassifier

from synth.metrics.clusters import FLOOR, log_cluster
from synth.metrics.kernel import mmd, mmd_of_points
from synth.metrics.propensity import detection_auroc, pmse
from synth.metrics.spaces import LabelCodes, Mixed
from synth.metrics.support import support, support_of_points
from synth.metrics.tables import table_of
from synth.schema import Categorical, Continuous, Schema

PLANE = Schema(columns={"x": Continuous(min=-100, max=100), "g": Categorical(categories=["u", "v"])})


def _plane(n: int, seed: int, shift: float = 0.0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"x": rng.normal(shift, 1, n), "g": rng.choice(["u", "v"], n)})


def test_spaces_place_rows_as_documented(clinic: Schema, patients: pd.DataFrame) -> None:
    table = table_of(patients, clinic)
    codes = LabelCodes.fit(table).points(table)
    # age, dose, dose empty?, ward code, ill code
    assert codes.tolist()[1] == pytest.approx([1 / 3, 0.5, 0.0, 0.0, 1.0])
    assert codes.tolist()[3] == pytest.approx([1.0, 0.5, 1.0, 3.0, 1.0])
    points = Mixed.fit(table).points(table)
    apart = points[0] - points[2]  # age 2/3, dose 1, ward differs (1), ill equal
    assert np.linalg.norm(apart) == pytest.approx(np.sqrt(4 / 9 + 1 + 1))


def test_pmse_bounds() -> None:
    real = _plane(200, 1)
    assert pmse(real, real, PLANE) == pytest.approx(0.0, abs=1e-12)
    assert pmse(real, _plane(200, 2, shift=50.0), PLANE) == pytest.approx(0.25)
    # Unequal sizes: c = 3/4, perfectly separated: (1/4)(3/4)^2 + (3/4)(1/4)^2
    assert pmse(_plane(100, 1), _plane(300, 2, shift=50.0), PLANE) == pytest.approx(0.1875)


def test_detection_knows_a_shift_and_nothing_else() -> None:
    # Standard error of the AUROC about 0.013 at 2 x 1000 rows; five of them: false alarm below 1e-6.
    assert detection_auroc(_plane(1000, 1), _plane(1000, 2), PLANE) == pytest.approx(0.5, abs=0.065)
    certain = detection_auroc(_plane(300, 1), _plane(300, 2, shift=50.0), PLANE)
    assert certain is not None
    assert certain > 0.99
    assert detection_auroc(_plane(2, 1), _plane(300, 2), PLANE) is None


def test_log_cluster_extremes() -> None:
    real = _plane(300, 1)
    assert log_cluster(real, real, PLANE) == FLOOR
    # Two clusters suffice to separate: mean of (1 - 1/2)^2 and (0 - 1/2)^2 = 1/4, so -2.
    schema = Schema(columns={"x": Continuous(min=-100, max=100)})
    assert log_cluster(_plane(50, 1)[["x"]], _plane(50, 2, 50.0)[["x"]], schema) == pytest.approx(-2.0)
    constant = pd.DataFrame({"x": [1.0, 1.0]})
    assert log_cluster(constant, constant, schema) is None


def test_log_cluster_is_the_least_of_nineteen_clusterings_of_the_main_components() -> None:
    """Worked out again from scikit-learn's pieces; fewer clusterings, another extreme or other components differ."""
    schema = Schema(columns={name: Continuous(min=-100, max=100, decimals=6) for name in "pqrs"})
    rng = np.random.default_rng(11)
    left, right = (np.round(rng.normal(0, [1, 1, 1, 0.2], (60, 4)), 6) for _ in range(2))
    low, width = left.min(axis=0), np.ptp(left, axis=0)
    points = (np.vstack([left, right]) - low) / width
    shares = []
    for kept in (0.85, 0.2):
        components = PCA(kept, svd_solver="full").fit_transform(points)
        figures = []
        for clusters in range(2, 21):
            labels = KMeans(clusters, random_state=0).fit_predict(components)
            real = np.array([(labels[:60] == k).sum() / (labels == k).sum() for k in range(clusters)])
            figures.append(np.log2(np.mean((real - 0.5) ** 2)))
        shares.append(figures)
    assert min(shares[0]) < min(shares[0][0], min(shares[1]), max(shares[0])) - 0.01
    found = log_cluster(*(pd.DataFrame(rows, columns=list("pqrs")) for rows in (left, right)), schema)
    assert found == pytest.approx(min(shares[0]))


def test_pmse_is_of_a_tree_of_depth_five() -> None:
    left, right = _plane(400, 1), _plane(400, 2, shift=0.5)
    codes = pd.concat([left, right]).assign(g=lambda rows: (rows.g == "v").astype(float))
    codes["x"] = (codes.x.round(2) - left.x.round(2).min()) / np.ptp(left.x.round(2))
    made = np.repeat([0, 1], 400)
    figures = {}
    for depth in (4, 5, 6, None):
        tree = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(codes[["x", "g"]].to_numpy(), made)
        figures[depth] = np.mean((tree.predict_proba(codes[["x", "g"]].to_numpy())[:, 1] - 0.5) ** 2)
    assert len({round(figure, 3) for figure in figures.values()}) == 4
    assert pmse(left, right, PLANE) == pytest.approx(figures[5], abs=1e-6)


def test_support_by_hand() -> None:
    real = np.array([[0.0], [1.0], [2.0], [3.0]])
    synthetic = np.array([[0.5], [0.6], [0.7], [100.0]])
    result = support_of_points(real, synthetic, neighbours=1)
    # Real balls have radius 1. 0.5, 0.6, 0.7 each lie in the balls of 0 and 1; 100 in none.
    assert result.precision == 0.75
    assert result.density == pytest.approx(6 / 4)
    assert result.coverage == 0.5  # 0 and 1 hold a synthetic point; 2 is 1.3 from 0.7
    # Synthetic radii 0.1, 0.1, 0.1, 99.3: all of 1, 2, 3 lie within 99.3 of 100, and 0 does not.
    assert result.recall == 0.75


def test_support_of_twins_and_of_too_few_rows() -> None:
    twins = pd.DataFrame({"x": [1.0] * 10, "g": ["u"] * 10})
    same = support(twins, twins, PLANE)
    assert same is not None
    assert (same.precision, same.recall, same.coverage) == (1.0, 1.0, 1.0)
    assert support(twins.head(5), twins, PLANE) is None


def test_mmd_by_hand() -> None:
    real, synthetic = np.array([[0.0], [2.0]]), np.array([[2.0], [4.0]])
    # kappa = 2 * 1 * var(0, 2) = 2. Within: 2/(2+4) each. Between: distances 2, 4, 0, 2 -> 1/3, 1/9, 1, 1/3.
    assert mmd_of_points(real, synthetic) == pytest.approx(2 / 3 - 2 * (1 / 3 + 1 / 9 + 1 + 1 / 3) / 4)


def test_mmd_of_many_points_is_the_mean_of_ten_draws_of_a_thousand() -> None:
    rng = np.random.default_rng(3)
    real, synthetic = rng.normal(size=(1500, 2)), rng.normal(0.2, 1.0, size=(1300, 2))
    kappa = 2 * 2 * real.var(axis=0).mean()
    draws = np.random.default_rng(7)
    values = []
    for _ in range(10):
        x, y = (points[draws.choice(len(points), 1000, replace=False)] for points in (real, synthetic))
        xx, yy, xy = (kappa / (kappa + cdist(a, b, "sqeuclidean")) for a, b in ((x, x), (y, y), (x, y)))
        values.append((xx.sum() - 1000) / (1000 * 999) + (yy.sum() - 1000) / (1000 * 999) - 2 * xy.mean())
    assert mmd_of_points(real, synthetic, seed=7) == pytest.approx(np.mean(values))


def test_mmd_of_tables_is_small_for_equal_and_large_for_shifted() -> None:
    same, shifted = mmd(_plane(1500, 1), _plane(1500, 2), PLANE), mmd(_plane(1500, 1), _plane(1500, 2, 3.0), PLANE)
    assert same is not None
    assert shifted is not None
    assert abs(same) < 0.005 < shifted
    assert mmd(_plane(1, 1), _plane(5, 2), PLANE) is None
