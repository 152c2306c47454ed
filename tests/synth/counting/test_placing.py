"""Numbers within their bins: related ones rise together there, too, and no column's distribution is touched."""

from __future__ import annotations

import numpy as np
import pytest

from synth.counting.placing import FEWEST_ROWS, placed
from synth.encoding.contingency import Ints
from synth.encoding.scales import Floats

ROWS, BINS = 20_000, 8


def normals(correlation: float, rows: int = ROWS) -> Floats:
    rng = np.random.default_rng(11)
    first, other = rng.standard_normal((2, rows))
    return np.array([first, correlation * first + (1 - correlation**2) ** 0.5 * other])


def binned(values: Floats) -> Ints:
    ranks: Ints = np.argsort(np.argsort(values))
    return ranks * BINS // len(values)


def within(values: Floats, bins: Ints) -> Floats:
    """How far a row's number is from the middle of its bin's numbers."""
    means = np.bincount(bins, weights=values) / np.bincount(bins)
    return np.asarray(values - means[bins])


@pytest.mark.parametrize("correlation", [0.95, -0.95])
def test_related_numbers_are_related_within_bins_as_they_were(correlation: float) -> None:
    real = normals(correlation)
    bins = {name: binned(values) for name, values in zip("ab", real, strict=True)}
    ranks = placed(bins, dict.fromkeys(bins, BINS), np.random.default_rng(12))
    inside = [within(real[n], bins[name]) for n, name in enumerate("ab")]
    found = [within(ranks[name], bins[name]) for name in "ab"]
    wanted = np.corrcoef(inside)[0, 1]
    assert abs(wanted) > 0.2  # the test can fail: there is something to keep
    assert np.corrcoef(found)[0, 1] == pytest.approx(wanted, abs=0.05)


def test_numbers_that_are_not_related_are_left_to_luck() -> None:
    bins = {name: binned(values) for name, values in zip("ab", normals(0.1), strict=True)}
    assert placed(bins, dict.fromkeys(bins, BINS), np.random.default_rng(12)) == {}


def test_few_rows_and_no_numbers_are_left_to_luck() -> None:
    bins = {name: binned(values) for name, values in zip("ab", normals(0.95, FEWEST_ROWS - 1), strict=True)}
    assert placed(bins, dict.fromkeys(bins, BINS), np.random.default_rng(12)) == {}
    assert placed({}, {}, np.random.default_rng(12)) == {}


def test_missing_cells_and_constant_columns_do_no_harm() -> None:
    bins = {name: binned(values) for name, values in zip("ab", normals(0.95), strict=True)}
    bins["a"] = np.where(np.arange(ROWS) % 3 == 0, BINS, bins["a"])
    bins["constant"] = np.zeros(ROWS, dtype=np.int64)
    ranks = placed(bins, dict.fromkeys(bins, BINS), np.random.default_rng(12))
    assert set(ranks) == {"a", "b"}
    assert all(np.isfinite(each).all() for each in ranks.values())
