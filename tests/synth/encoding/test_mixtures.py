"""Mixtures fitted on histograms must be those that rows would have given, with exact values kept exact."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import wasserstein_distance
from sklearn.mixture import BayesianGaussianMixture

from synth.encoding.cells import Cells
from synth.encoding.mixtures import (
    Mixture,
    average_by_rank,
    by_rank,
    fit_cells,
    fit_local,
    fit_mixture,
    pool_and_refit,
)
from synth.encoding.records import Records
from synth.errors import DataError
from synth.schema import Integer, Schema

PUBLIC_DATA = Path(__file__).resolve().parents[4] / "shared" / "data"  # Adult and credit default, where they lie there
ROWS = 4_000


def _made_columns() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    amounts = np.where(rng.random(ROWS) < 0.6, 0, np.round(rng.lognormal(8, 1, ROWS)))
    modes = np.round(np.where(rng.random(ROWS) < 0.3, rng.normal(2_000, 100, ROWS), rng.normal(8_000, 900, ROWS)))
    return {
        "amounts": amounts,
        "two modes": modes,
        "hours": rng.choice([20.0, 38, 40, 45], ROWS, p=[0.1, 0.2, 0.6, 0.1]),
    }


def _public_columns() -> dict[str, np.ndarray]:
    found = {}
    for file in ("adult/train.csv.gz", "credit-default/credit-default.csv.gz"):
        if (PUBLIC_DATA / file).exists():
            frame = pd.read_csv(PUBLIC_DATA / file).sample(ROWS, random_state=0)
            numbers = frame.select_dtypes("number").drop(columns="ID", errors="ignore")
            found |= {name: numbers[name].to_numpy(float) for name in numbers if numbers[name].nunique() > 12}
    return found


COLUMNS = _made_columns() | _public_columns()


def _cells(values: np.ndarray, bins: int = 256) -> Cells:
    return Cells(Schema(columns={"x": Integer(min=int(values.min()), max=int(values.max()) + 1)}), bins)


def _fit(values: np.ndarray, sigma: float = 0.0, rng: np.random.Generator | None = None) -> Mixture:
    cells = _cells(values)
    counts = cells.count(Records({"x": values})).astype(np.float64)
    if rng is not None:
        counts += np.rint(rng.normal(0, sigma, cells.size))
    return fit_cells(cells, "x", cells.probabilities(counts, sigma)["x"])


def _reference(values: np.ndarray) -> Mixture:
    model = BayesianGaussianMixture(
        n_components=10,
        weight_concentration_prior_type="dirichlet_process",
        weight_concentration_prior=0.001,
        random_state=0,
    ).fit(values[:, None])
    kept = model.weights_ > 0.005
    weights = model.weights_[kept] / model.weights_[kept].sum()
    return Mixture(weights, model.means_[kept, 0], np.sqrt(model.covariances_[kept, 0, 0]))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", COLUMNS)
def test_the_histogram_gives_the_mixture_of_the_pooled_rows(name: str) -> None:
    values, rng = COLUMNS[name], np.random.default_rng(0)
    ours, theirs = _fit(values).sample(30_000, rng), _reference(values).sample(30_000, rng)
    assert wasserstein_distance(ours, theirs) < 0.02 * np.ptp(values)


def test_noise_in_empty_cells_makes_no_far_modes() -> None:
    rng = np.random.default_rng(3)
    values = np.append(np.round(rng.normal(5_000, 300, 10_000)), [0, 1_000_000])
    mixture = _fit(values, sigma=20.0, rng=rng)
    far = np.abs(mixture.means - 5_000) > 3_000
    assert mixture.weights[far].sum() < 0.02


def test_a_value_that_stands_out_is_a_mode_of_its_own() -> None:
    values = COLUMNS["amounts"]
    mixture = _fit(values)
    assert mixture.means[0] == 0.0
    assert mixture.weights[0] == pytest.approx((values == 0).mean(), abs=0.01)
    assert 4 * mixture.stds[0] < 0.5
    assert mixture.weights.sum() == pytest.approx(1)
    assert len(mixture) <= 10


def test_a_constant_column_is_one_mode() -> None:
    mixture = _fit(np.full(50, 7.0))
    assert (len(mixture), mixture.means[0]) == (1, 7.0)
    assert len(fit_mixture(np.full(50, 7.0))) == 1


def test_a_column_of_missing_cells_still_has_a_mixture() -> None:
    cells = Cells(Schema(columns={"x": Integer(min=0, max=20, missing=True)}), 64)
    mixture = fit_cells(cells, "x", np.eye(cells.size)[-1])
    assert np.isfinite(by_rank(mixture)).all()


def test_weights_count_like_repeated_rows() -> None:
    rng = np.random.default_rng(0)
    values, weights = rng.normal([0.0, 50.0], 1.0, (500, 2)).ravel(), np.tile([3.0, 1.0], 500)
    weighted = fit_mixture(values, weights)
    low = weighted.means < 25
    assert weighted.weights[low].sum() == pytest.approx(0.75, abs=0.01)


def test_fewer_distinct_values_than_modes_reduce_the_modes() -> None:
    assert len(fit_mixture(np.array([1.0, 1.0, 2.0]))) <= 2


def test_a_small_scale_is_no_smaller_problem() -> None:
    rng = np.random.default_rng(0)
    values = np.append(rng.normal(0, 1, 2000), rng.normal(20, 1, 2000))
    coarse, fine = fit_mixture(values), fit_mixture(values * 1e-6)
    np.testing.assert_allclose(fine.stds * 1e6, coarse.stds, rtol=1e-3)


def test_a_party_with_fewer_rows_than_modes_is_told() -> None:
    with pytest.raises(DataError, match="10 modes"):
        fit_local(np.array([1.0, 2.0, np.nan]), None)


def test_local_modes_are_ranked_and_a_warm_start_stays() -> None:
    rng = np.random.default_rng(0)
    values = np.append(rng.normal(0, 1, 3000), rng.normal(100, 2, 1000))
    first = fit_local(values, None, components=2)
    assert np.all(np.diff(first.means) > 0)
    again = fit_local(values, first, components=2)
    np.testing.assert_allclose(by_rank(again), by_rank(first), rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(first.weights, [0.75, 0.25], atol=1e-3)


def test_averaging_equal_mixtures_is_the_identity() -> None:
    mixture = Mixture(np.array([0.2, 0.8]), np.array([-1.0, 3.0]), np.array([0.5, 2.0]))
    np.testing.assert_allclose(by_rank(average_by_rank(by_rank(mixture) * 3, 3)), by_rank(mixture))


def test_parties_may_come_in_any_order() -> None:
    rng = np.random.default_rng(0)
    parties = [fit_local(rng.normal(centre, 1, 300), None, components=2) for centre in (0, 10, 20)]
    rows = [300, 500, 200]
    forward = pool_and_refit(parties, rows, seed=4)
    backward = pool_and_refit(parties[::-1], rows[::-1], seed=4)
    np.testing.assert_array_equal(by_rank(forward), by_rank(backward))


def test_one_party_and_one_round_is_fit_resample_refit() -> None:
    local = fit_local(np.random.default_rng(0).normal(5, 2, 1000), None, components=3)
    pool = local.sample(1000, np.random.default_rng(9))
    np.testing.assert_array_equal(by_rank(pool_and_refit([local], [1000], seed=9)), by_rank(fit_mixture(pool, seed=9)))
