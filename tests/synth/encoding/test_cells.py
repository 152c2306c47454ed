"""The grid is public, every row falls into one cell per column, and a cell gives back only its own values."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

from synth.encoding.cells import Cells
from synth.encoding.denoising import denoise
from synth.encoding.records import Records
from synth.encoding.scales import scale_of
from synth.errors import PlanError
from synth.schema import Categorical, Column, Continuous, Datetime, Integer, Schema
from tests.synth.encoding.random_schemas import random_records, schemas

SIGMA = 20.0  # counts; what a share of 0.02 zCDP leaves on Adult


def grid(column: Column, bins: int = 128) -> Cells:
    return Cells(Schema(columns={"x": column}), bins)


@settings(max_examples=100, deadline=None)
@given(schema=schemas(), rows=st.integers(1, 40), seed=st.integers(0, 99), bins=st.integers(8, 300))
def test_a_row_is_counted_once_per_column(schema: Schema, rows: int, seed: int, bins: int) -> None:
    cells, records = Cells(schema, bins), random_records(schema, rows, seed)
    counts = cells.count(records)
    assert counts.shape == (cells.size,)
    assert cells.queries == len(schema.released)
    assert [part.sum() for part in cells.split(counts).values()] == [rows] * cells.queries
    one_more = cells.count(Records.concat([records, records.take(slice(0, 1))])) - counts
    assert sorted(set(one_more.tolist()) - {0}) == [1]
    assert one_more.sum() == cells.queries
    for name, column in schema.numeric.items():
        assert len(cells.split(counts)[name]) <= bins + column.missing


@settings(max_examples=100, deadline=None)
@given(schema=schemas(), seed=st.integers(0, 99), bins=st.integers(8, 100))
def test_values_drawn_from_a_cell_lie_in_that_cell(schema: Schema, seed: int, bins: int) -> None:
    cells, rng = Cells(schema, bins), np.random.default_rng(seed)
    vector = rng.integers(0, 5, cells.size) + (np.arange(cells.size) == 0)
    for name, probabilities in cells.probabilities(vector + 1, sigma=0.0).items():
        one = int(rng.integers(0, len(probabilities)))
        values = cells.draw(name, np.eye(len(probabilities))[one], 50, rng)
        column = schema.released[name]
        other = {key: np.zeros(50) for key in schema.released} | {name: values}
        assert set(cells.index(Records(other))[name].tolist()) == {one}
        if name in schema.numeric:
            scale = scale_of(column)  # type: ignore[arg-type]
            np.testing.assert_array_equal(values, scale.snap(np.asarray(values, dtype=np.float64)))


@settings(max_examples=60, deadline=None)
@given(schema=schemas(), seed=st.integers(0, 99))
def test_spread_values_have_the_histogram_they_came_from(schema: Schema, seed: int) -> None:
    cells, rng = Cells(schema, 40), np.random.default_rng(seed)
    for name, column in schema.numeric.items():
        counts = rng.integers(0, 50, len(cells.split(np.zeros(cells.size))[name])).astype(np.float64)
        counts[0] += 1
        counts[len(counts) - column.missing :] = 0
        total = int(counts.sum())
        values = cells.spread(name, counts, total)
        other = {key: np.zeros(total) for key in schema.released} | {name: values}
        again = np.bincount(cells.index(Records(other))[name], minlength=len(counts))
        np.testing.assert_array_equal(again, counts)
        assert np.all(np.diff(values) >= 0)


def test_few_values_have_a_cell_each() -> None:
    cells = grid(Integer(min=17, max=90))
    assert cells.size == 74
    np.testing.assert_allclose(cells.edges("x"), np.arange(17, 92) - 0.5)


@pytest.mark.parametrize(
    ("column", "alone"),
    [
        (Integer(min=0, max=99_999), [0, 99_999]),
        (Integer(min=-500_000, max=2_000_000), [-500_000, 0, 2_000_000]),
        (Continuous(min=0, max=500, decimals=1), [0, 500]),
        (Continuous(min=35, max=42, decimals=3), [35, 42]),
    ],
)
def test_ends_and_zero_stand_alone(column: Column, alone: list[float]) -> None:
    found = set(grid(column).single_values("x").values())
    assert found.issuperset(alone)


def test_wide_domains_have_fine_cells_near_zero_and_narrow_ones_even_cells() -> None:
    wide = np.diff(grid(Integer(min=0, max=2_000_000)).edges("x"))
    assert wide[5] < 500
    assert wide[-2] > 50_000
    even = np.diff(grid(Continuous(min=0, max=300, decimals=0)).edges("x"))[1:-1]
    assert even.max() / even.min() <= 3  # rounding to whole values


def test_days_are_cut_evenly_and_never_bent() -> None:
    cells = grid(Datetime(min=dt.datetime(1950, 1, 1), max=dt.datetime(2024, 1, 1)), bins=100)
    inner = np.diff(cells.edges("x"))[2:-2]
    assert inner.max() - inner.min() <= 86_400 * 1.5


def test_the_missing_cell_is_the_last() -> None:
    cells = grid(Continuous(min=0, max=1, missing=True))
    assert cells.index(Records({"x": np.array([np.nan, 0.0])}))["x"].tolist() == [cells.size - 1, 0]
    vector = np.zeros(cells.size)
    vector[[0, -1]] = [300, 100]
    probabilities = cells.probabilities(vector, sigma=0.0)["x"]
    assert probabilities[-1] == pytest.approx(0.25)
    drawn = cells.draw("x", probabilities, 4000, np.random.default_rng(0))
    assert np.isnan(drawn).mean() == pytest.approx(0.25, abs=0.03)  # 4.4 standard errors: false alarm 1e-5


def test_too_few_bins_are_refused() -> None:
    with pytest.raises(PlanError, match="too few"):
        grid(Integer(min=0, max=9), bins=2)


@given(counts=st.lists(st.floats(-100, 1000), min_size=1, max_size=70), sigma=st.floats(0, 50), ordered=st.booleans())
def test_denoised_counts_are_a_distribution(counts: list[float], sigma: float, ordered: bool) -> None:
    found = denoise(np.array(counts), sigma, ordered)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)


@given(counts=st.lists(st.integers(0, 1000), min_size=1, max_size=70), ordered=st.booleans())
def test_counts_without_noise_are_not_changed(counts: list[int], ordered: bool) -> None:
    exact = np.array(counts, dtype=np.float64) + 1
    np.testing.assert_allclose(denoise(exact, 0.0, ordered), exact / exact.sum(), atol=1e-12)


def test_noise_in_rare_labels_adds_no_mass() -> None:
    rng = np.random.default_rng(5)
    counts = np.zeros(200)
    counts[:2] = [6000, 5000]
    noisy = counts + rng.normal(0, SIGMA, 200)
    clipped = np.maximum(noisy, 0)
    assert clipped[2:].sum() / clipped.sum() > 0.1
    assert denoise(noisy, SIGMA, ordered=False)[2:].sum() < 0.03


def test_an_empty_stretch_is_emptied_and_a_thin_tail_is_kept() -> None:
    rng = np.random.default_rng(6)
    counts = np.concatenate([np.full(16, 600.0), np.full(16, 30.0), np.zeros(32)])  # body, tail, nothing
    found = np.mean([denoise(counts + rng.normal(0, SIGMA, 64), SIGMA, ordered=True) for _ in range(200)], axis=0)
    # Means of 200: the tail holds 0.0476 of the mass, known to 0.0008; nothing would hold 0.004 if only negative
    # sums were emptied, and 0.025 if negative counts were. False alarms below 1e-6.
    assert found[16:32].sum() == pytest.approx(480 / 10_080, abs=0.005)
    assert found[32:].sum() * 10_080 < 2 * SIGMA  # a tail may go on right beside itself, by less than noise hides
    assert found[44:].sum() < 0.0005


def _amounts(rng: np.random.Generator, n: int) -> np.ndarray:
    values = np.where(rng.random(n) < 0.6, 0, np.round(rng.lognormal(8, 1.2, n)))
    return np.minimum(values, 999_999).astype(np.float64)


@pytest.mark.parametrize(("sigma", "limit"), [(0.0, 0.0005), (SIGMA, 0.004)])
def test_heavy_tails_survive_the_release(sigma: float, limit: float) -> None:
    rng = np.random.default_rng(2)
    values = _amounts(rng, 11_000)
    cells = grid(Integer(min=0, max=999_999))
    counts = cells.count(Records({"x": values})) + np.rint(rng.normal(0, sigma, cells.size))
    again = cells.draw("x", cells.probabilities(counts, sigma)["x"], 50_000, rng)
    assert wasserstein_distance(values, again) / np.ptp(values) < limit
    assert (again == 0).mean() == pytest.approx(0.6, abs=0.02)


def test_discrete_columns_draw_their_codes() -> None:
    cells = grid(Categorical(categories=["a", "b", "c"], missing=True))
    codes = cells.draw("x", np.array([0.0, 0.5, 0.0, 0.5]), 100, np.random.default_rng(0))
    assert set(codes.tolist()) == {1, 3}


def test_where_every_value_is_missing_they_are_spread_evenly() -> None:
    """It divided by zero, and drew the last cell with a warning."""
    schema = Schema.model_validate({"columns": {"dose": {"kind": "continuous", "min": 0, "max": 10, "missing": True}}})
    cells = Cells(schema, 8)
    width = cells.slices["dose"].stop - cells.slices["dose"].start
    nothing_known = np.eye(width)[-1]  # all in the missing cell
    values = cells.spread("dose", nothing_known, 100)
    assert np.isfinite(values).all()
    assert np.histogram(values, 4, (0, 10))[0].min() > 10
