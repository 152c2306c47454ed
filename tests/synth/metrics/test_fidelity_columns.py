"""Hellinger and Kolmogorov-Smirnov by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ks_2samp

from synth.metrics.fidelity_columns import hellinger, hellinger_by_column, ks, ks_by_column
from synth.schema import Continuous, Integer, Schema

ONE = Schema(columns={"x": Continuous(min=-1e9, max=1e9, missing=True)})


def test_hellinger_of_categories(ward_only: Schema) -> None:
    left, right = pd.DataFrame({"ward": ["a", "b"]}), pd.DataFrame({"ward": ["c", None]})
    assert hellinger(left, right, ward_only) == pytest.approx(1.0)
    # p = (1, 0), q = (1/2, 1/2): sum of squares = (1 - sqrt(1/2))^2 + 1/2
    expected = np.sqrt(((1 - np.sqrt(0.5)) ** 2 + 0.5) / 2)
    assert hellinger(pd.DataFrame({"ward": ["a"]}), left, ward_only) == pytest.approx(expected)


def test_hellinger_of_numbers_uses_pooled_automatic_edges() -> None:
    schema = Schema(columns={"x": Integer(min=0, max=100)})
    real, synthetic = pd.DataFrame({"x": [0, 0, 10, 10]}), pd.DataFrame({"x": [0, 0, 0, 0]})
    # Whatever the edges, 0 and 10 fall apart: p = (1/2, 1/2), q = (1, 0).
    assert hellinger(real, synthetic, schema) == pytest.approx(np.sqrt(((1 - np.sqrt(0.5)) ** 2 + 0.5) / 2))


def test_hellinger_of_many_numbers_has_as_many_bins_as_numpy_takes() -> None:
    """Twenty fixed bins would show less."""
    rng = np.random.default_rng(0)
    left, right = np.round(rng.lognormal(0, 1, 2000), 2), np.round(rng.lognormal(0.1, 1, 2000), 2)
    edges = np.histogram_bin_edges(np.concatenate([left, right]), "auto")
    p, q = (np.histogram(values, edges)[0] / 2000 for values in (left, right))
    found = hellinger(pd.DataFrame({"x": left}), pd.DataFrame({"x": right}), ONE)
    assert found == pytest.approx(np.sqrt(1 - np.sqrt(p * q).sum()))  # the textbook's other form
    p, q = (np.histogram(values, 20, (edges[0], edges[-1]))[0] / 2000 for values in (left, right))
    assert np.sqrt(1 - np.sqrt(p * q).sum()) < 0.8 * found


def test_one_far_outlier_does_not_ask_for_millions_of_bins() -> None:
    values = np.r_[np.random.default_rng(0).normal(size=2000), 1e9]
    frame = pd.DataFrame({"x": values})
    assert hellinger(frame, frame, ONE) == 0.0


def test_ks_is_the_largest_gap() -> None:
    schema = Schema(columns={"x": Integer(min=0, max=10)})
    real, synthetic = pd.DataFrame({"x": [1, 2, 3, 4]}), pd.DataFrame({"x": [3, 4, 5, 6]})
    assert ks(real, synthetic, schema) == pytest.approx(0.5)
    rng = np.random.default_rng(1)
    left, right = rng.normal(size=300), rng.normal(0.3, 1, size=200)
    assert ks_by_column(pd.DataFrame({"x": left}), pd.DataFrame({"x": right}), ONE)["x"] == pytest.approx(
        ks_2samp(np.round(left, 2), np.round(right, 2)).statistic
    )


def test_an_emptied_column_is_as_far_as_can_be() -> None:
    filled, empty = pd.DataFrame({"x": [1.0, 2.0]}), pd.DataFrame({"x": [None, None]})
    assert ks_by_column(filled, empty, ONE) == {"x": 1.0}
    assert hellinger_by_column(filled, empty, ONE) == {"x": 1.0}
    assert ks(empty, empty, ONE) is None
    assert hellinger(empty, empty, ONE) == 0.0
