"""Heaps keep their share, tails hold no more than noise hides, and every row lies in one cell of each histogram."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.encoding.bins import BinLimits, refine
from synth.encoding.cells import Cells
from synth.encoding.denoising import denoise
from synth.encoding.fine_cells import FineCells
from synth.encoding.records import Records
from synth.schema import Boolean, Column, Continuous, Datetime, Integer, Schema
from tests.synth.encoding.random_schemas import random_records, schemas

SIGMA = 60.0  # Adult's, at ε = 1
ROWS = 50_000


def grid(column: Column, groups: int | None = 128) -> FineCells:
    """Beside a column of two cells, from which the number of rows is known."""
    return FineCells(Cells(Schema(columns={"x": column, "y": Boolean(false="n", true="y")}), 128), groups)


def shares(cells: FineCells, values: np.ndarray, seed: int = 0) -> np.ndarray:
    released = cells.released(cells.count(Records({"x": values, "y": np.zeros(len(values), dtype=np.int64)})))
    noisy = released + np.rint(np.random.default_rng(seed).normal(0, SIGMA, len(released)))
    return cells.probabilities(cells.consistent(noisy), SIGMA)["x"]


@settings(max_examples=60, deadline=None)
@given(schema=schemas(), rows=st.integers(1, 40), seed=st.integers(0, 99), groups=st.sampled_from([8, 32, 128]))
def test_a_row_lies_in_one_cell_of_each_histogram(schema: Schema, rows: int, seed: int, groups: int) -> None:
    cells = FineCells(Cells(schema, 128), groups)
    records = random_records(schema, rows, seed)
    counts = cells.released(cells.count(records))
    assert counts.shape == (cells.released_size,)
    one_more = cells.released(cells.count(Records.concat([records, records.take(slice(0, 1))]))) - counts
    assert one_more.max() == 1
    assert one_more.min() >= 0
    least = len(schema.released) + len(cells.groups)  # a missing date has no weekday
    assert least <= one_more.sum() <= least + len(cells.weeks) == len(schema.released) + cells.counted_again
    np.testing.assert_array_equal(cells.consistent(counts), counts[: cells.size])  # exact counts agree already
    np.testing.assert_array_equal(cells.to_coarse(counts[: cells.size], 0.0), cells.coarse.count(records))


def test_consistent_counts_have_the_variance_that_is_said() -> None:
    """5,000 releases of noise: a variance is known to 2 %, five standard errors to 10 %."""
    cells = grid(Integer(min=0, max=2000), groups=16)
    rng, bins = np.random.default_rng(1), np.arange(2001) // 300
    sums = []
    for _ in range(5_000):
        counts = cells.consistent(np.rint(rng.normal(0, SIGMA, cells.released_size)))
        sums.append(np.bincount(bins, weights=counts[: len(bins)]))
    said = cells.variances("x", bins, SIGMA**2)
    np.testing.assert_allclose(np.var(sums, axis=0) / said, 1.0, atol=0.1)
    assert said[0] < 60 * SIGMA**2  # 300 cells alone would have 300


def blood_pressure(rng: np.random.Generator) -> np.ndarray:
    """Four of ten say 120, most others a multiple of ten, a few are typing errors."""
    true = rng.normal(126, 16, ROWS)
    heaped = np.where(rng.random(ROWS) < 0.4, 120, np.round(true / 10) * 10)
    values = np.where(rng.random(ROWS) < 0.9, heaped, np.round(true))
    return np.where(rng.random(ROWS) < 0.001, values * 100, values)


@pytest.mark.parametrize("seed", range(3))
def test_heaps_keep_their_share(seed: int) -> None:
    """128 cells gave 120 a tenth of its rows. A share is known to 2 σ / rows = 0.0024."""
    values = blood_pressure(np.random.default_rng(seed))
    cells = grid(Integer(min=-200, max=20_000))
    found = shares(cells, values, seed)
    alone = cells.single_values("x")
    at = {value: cell for cell, value in alone.items()}
    for heap in (100.0, 110.0, 120.0, 130.0, 140.0, 150.0):
        assert found[at[heap]] == pytest.approx((values == heap).mean(), abs=5 * SIGMA / ROWS)


def test_a_declared_bound_does_not_flatten_amounts_nor_invent_a_tail() -> None:
    """The median was 1,158 instead of 250, and far tails held up to fifty times their rows."""
    far = []
    for seed in range(6):
        values = np.round(np.exp(np.random.default_rng(seed).normal(5.5, 1.6, ROWS)), 2)
        cells = grid(Continuous(min=0, max=1e8, decimals=2))
        drawn = cells.spread("x", shares(cells, values, seed), ROWS)
        assert np.median(drawn) == pytest.approx(np.median(values), rel=0.05)
        assert (drawn > np.quantile(values, 0.98)).sum() > 300
        far.append((drawn > np.quantile(values, 0.999)).sum())
    assert np.mean(far) <= 2 * 50
    assert max(far) < 50 + 4 * SIGMA


def test_round_numbers_have_a_cell_each_and_times_are_cut_at_days() -> None:
    amounts = grid(Continuous(min=0, max=1e6, decimals=2)).single_values("x")
    assert {0.0, 1.0, 9.5, 10.0, 250.0, 1_500.0, 100_000.0, 1_000_000.0} <= set(amounts.values())
    moments = grid(Datetime(min="2020-01-01", max="2023-01-01", precision="second"))  # type: ignore[arg-type]
    starts = moments.edges("x")[:-1] + 0.5
    assert set(np.arange(1096) * 86_400.0) <= set(starts.tolist())


def test_without_privacy_nothing_is_counted_twice() -> None:
    assert grid(Integer(min=0, max=100_000), groups=None).groups == {}


def test_no_bin_ends_within_a_group() -> None:
    """There its count would have the noise of many cells: these bins had 4 σ in the mean, and have 2."""
    cells = grid(Integer(min=0, max=100_000))
    values = np.clip(np.random.default_rng(0).lognormal(8, 1, ROWS).round(), 0, 100_000)
    released = cells.released(cells.count(Records({"x": values, "y": np.zeros(ROWS, dtype=np.int64)})))
    counts = cells.consistent(released + np.rint(np.random.default_rng(1).normal(0, SIGMA, len(released))))
    bins = refine(cells, counts, SIGMA, BinLimits(20, 20, 500.0, 100.0))
    of, group = bins.of("x"), cells.groups["x"]
    assert len(set(zip(of, group, strict=True))) == group[-1] + 1
    assert bins.size("x") > 10
    assert np.median(cells.variances("x", of, 1.0)) < 9


def test_a_spike_keeps_its_count_when_a_tail_is_hidden() -> None:
    """As in Adult's capital gain: 92 % at zero, the rest thin over many cells. Rows that the tail lost to noise were
    made up for at the spike, which the release knows to a standard deviation."""
    counts = np.append(20_000.0, np.zeros(127))
    counts[70:100] += 60.0
    for seed in range(20):
        seen = np.rint(counts + np.random.default_rng(seed).normal(0, 60.0, 128))
        found = denoise(seen, 60.0, ordered=True, total=counts.sum()) * counts.sum()
        assert abs(found[0] - counts[0]) < 5 * 60.0  # false alarms: 1e-6 each
