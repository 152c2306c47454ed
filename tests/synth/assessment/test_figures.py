"""Figures from noisy counts: right without noise, and within their stated ends as often as stated with it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from synth.assessment import figures
from synth.assessment.record import Figure

ROWS = 20_000
DRAWS = 300
# An end that holds 95 times in 100 fails more than 28 times in 300 draws with a chance below 0.001.
MOST_MISSES = 28


def histogram(rng: np.random.Generator, buckets: int = 12) -> tuple[NDArray[np.float64], float]:
    """Counts (1, 2, buckets) of a useful score, and the exact AUROC of its buckets."""
    labels = rng.random(ROWS) < 0.25
    bucket = np.clip(np.round(rng.normal(4 + 4 * labels, 2)), 0, buckets - 1).astype(np.int64)
    counts = np.bincount(labels * buckets + bucket, minlength=2 * buckets).reshape(1, 2, buckets)
    return counts.astype(np.float64), float(roc_auc_score(labels, bucket))


def misses(found: list[Figure], truth: float) -> tuple[int, int]:
    return sum(figure.low > truth for figure in found), sum(figure.high < truth for figure in found)


def test_auroc_of_exact_counts_is_exact() -> None:
    counts, exact = histogram(np.random.default_rng(1))
    found = figures.auroc(counts, 0.0, seed=0)
    assert found.value == pytest.approx(exact, abs=1e-12)
    assert found.low == found.high == found.value


def test_auroc_of_noisy_counts_is_within_its_stated_ends() -> None:
    rng = np.random.default_rng(2)
    counts, exact = histogram(rng)
    found = [figures.auroc(counts + rng.normal(0, 40, counts.shape), 1600.0, n) for n in range(DRAWS)]
    assert max(misses(found, exact)) <= MOST_MISSES
    assert np.mean([figure.value for figure in found]) == pytest.approx(exact, abs=0.002)  # 4 standard errors
    assert np.mean([figure.high - figure.low for figure in found]) < 0.05


def test_several_classes_are_weighted_by_their_rows() -> None:
    perfect, useless = [[9.0, 0.0], [0.0, 3.0]], [[3.0, 3.0], [3.0, 3.0]]
    assert figures.auroc(np.array([perfect, useless]), 0.0, 0).value == pytest.approx((3 * 1.0 + 6 * 0.5) / 9)


def test_a_class_that_noise_has_emptied_is_no_number_out_of_nothing() -> None:
    found = figures.auroc(np.array([[[50.0, 40.0], [-3.0, -2.0]]]), 100.0, 0)
    assert found.value == 0.5
    assert 0 <= found.low <= found.high <= 1


def tables(rng: np.random.Generator, size: float) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]], float]:
    """Real and synthetic counts of 20 tables of 36 cells, and their mean total variation distance."""
    real, made, distances = [], [], []
    for _ in range(20):
        p = rng.dirichlet(np.ones(36))
        q = np.abs(p * (1 + size * rng.normal(size=36)))
        q /= q.sum()
        real.append(p * ROWS)
        made.append(q * ROWS)
        distances.append(np.abs(p - q).sum() / 2)
    return real, made, float(np.mean(distances))


def test_variation_of_exact_counts_is_exact() -> None:
    real, made, truth = tables(np.random.default_rng(3), 0.2)
    found = figures.variation(real, made, ROWS, [0.0] * len(real))
    assert found.value == found.low == found.high == pytest.approx(truth)


@pytest.mark.parametrize("size", [0.0, 0.05, 0.5])
def test_variation_of_noisy_counts_is_within_its_stated_ends(size: float) -> None:
    rng = np.random.default_rng(4)
    real, made, truth = tables(rng, size)
    found = []
    for _ in range(DRAWS):
        noisy = [table + rng.normal(0, 60, table.shape) for table in real]
        found.append(figures.variation(noisy, made, ROWS, [3600.0] * len(noisy)))
    assert max(misses(found, truth)) <= MOST_MISSES
    floor = found[0].noise_floor
    assert floor is not None
    # The estimate is far nearer to the truth than the plain distance, which is never below the floor.
    assert abs(np.mean([figure.value for figure in found]) - truth) < floor / 3


def test_rows_are_counted_best_by_the_smallest_tables() -> None:
    assert figures.row_count([np.array([40.0, 60.0]), np.array([30.0, 30.0, 30.0, 20.0])]) == pytest.approx(
        (100 / 2 + 110 / 4) / (1 / 2 + 1 / 4)
    )
    assert figures.row_count([np.array([-5.0, 2.0])]) == 1.0


def test_a_share_is_within_its_stated_ends() -> None:
    rng = np.random.default_rng(5)
    exact = np.array([15_000.0, 5_000.0])
    found = [figures.share(exact + rng.normal(0, 100, 2), 10_000.0) for _ in range(DRAWS)]
    assert max(misses(found, 0.25)) <= MOST_MISSES


def test_an_excess_counts_chance_as_an_error_too() -> None:
    copied = Figure(value=0.3, low=0.29, high=0.31)
    found = figures.excess(copied, 0.1, rows=900.0, strangers=900)
    assert found.value == pytest.approx(0.2)
    assert found.high - found.value == pytest.approx(np.hypot(0.01, 1.645 * np.sqrt(0.09 * 2 / 900)))
