"""Metrics that look at whole rows: propensity, clusters, support, kernel."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

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
    # Gaussian: median squared distance 4. Within e^-1 each; between e^-1, e^-4, 1, e^-1.
    gaussian = 2 * np.exp(-1) - 2 * (2 * np.exp(-1) + np.exp(-4) + 1) / 4
    assert mmd_of_points(real, synthetic, kernel="gaussian-median") == pytest.approx(gaussian)


def test_mmd_of_tables_is_small_for_equal_and_large_for_shifted() -> None:
    same, shifted = mmd(_plane(1500, 1), _plane(1500, 2), PLANE), mmd(_plane(1500, 1), _plane(1500, 2, 3.0), PLANE)
    assert same is not None
    assert shifted is not None
    assert abs(same) < 0.005 < shifted
    assert mmd(_plane(1, 1), _plane(5, 2), PLANE) is None
