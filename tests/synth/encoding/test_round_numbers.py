"""Round numbers that hide in noise one by one show together, and what is not round stays as it was."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from synth.encoding.cells import Cells
from synth.encoding.fine_cells import FineCells
from synth.encoding.round_numbers import round_units, with_round_numbers
from synth.plan import parse_schema

Floats = npt.NDArray[np.float64]
SIGMA = 90.0
ROWS = 20_000


def grid(highest: int) -> FineCells:
    schema = parse_schema({"columns": {"amount": {"kind": "integer", "min": 0, "max": highest}}})
    return FineCells(Cells(schema, 128), most_groups=40)


def released(cells: FineCells, values: Floats, seed: int) -> tuple[Floats, Floats]:
    """The real share of every cell, and the one that noisy counts give back."""
    starts = cells._positions["amount"]
    counts = np.bincount(np.searchsorted(starts, values, side="right") - 1, minlength=cells.size)
    out = cells.released(counts)
    noisy = out + np.rint(np.random.default_rng(seed).normal(0, SIGMA, len(out))).astype(np.int64)
    return counts / counts.sum(), cells.probabilities(cells.consistent(noisy), SIGMA)["amount"]


def distance(one: Floats, other: Floats) -> float:
    return float(np.abs(one - other).sum() / 2)


@pytest.mark.parametrize("seed", range(3))
def test_multiples_below_the_noise_are_given_back(seed: int) -> None:
    """60 limits of 10,000 to 600,000: 333 rows each, below the five and a half sigma that a heap alone must show."""
    cells = grid(1_000_000)
    limits = np.random.default_rng(seed).integers(1, 61, ROWS) * 10_000.0
    real, found = released(cells, limits, seed)
    assert distance(real, found) < 0.2  # a distribution without round numbers has 0.95
    multiples = round_units(cells.scales["amount"], cells._positions["amount"])
    assert found[real > 0].sum() > 0.85
    assert any(unit[real > 0].all() for unit in multiples)


@pytest.mark.parametrize("highest", [3_000, 1_000_000])
def test_numbers_that_are_not_round_stay(highest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Smooth, steep and flat columns, twelve draws: none is taken for round (4.5 sigma, some ten units each: once in
    about 25,000 columns)."""
    cells = grid(highest)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        for values in (
            rng.uniform(0, highest, ROWS),
            rng.exponential(highest / 20, ROWS),
            rng.normal(highest / 2, highest / 9, ROWS),
        ):
            with monkeypatch.context() as patch:
                values = np.clip(values, 0, highest).astype(int).astype(float)
                found = released(cells, values, seed)[1]
                patch.setattr("synth.encoding.denoising.with_round_numbers", lambda *given: given[2])
                assert np.allclose(found, released(cells, values, seed)[1], atol=1e-12)


def test_rounder_ones_may_hold_more() -> None:
    """Multiples of ten hold 60 % of each group and those of fifty 20 % beside: both are seen."""
    group, unit_10, unit_50 = np.repeat([0, 1], 100), np.arange(200) % 10 == 0, np.arange(200) % 50 == 0
    shares = np.full(200, 0.2 / 100) + unit_10 * 0.6 / 10 + unit_50 * 0.2 / 2
    found = with_round_numbers(
        shares * 1e4, group, np.ones(200), np.array([1e4, 1e4]), 1e-9, [unit_10.astype(bool), unit_50.astype(bool)]
    )
    assert distance(found / 2, shares / 2) < 0.05  # multiples of ten alone: 0.2
    assert found[0] == pytest.approx(shares[0], rel=0.05)


def test_units_are_of_the_schema_alone() -> None:
    cells = grid(3_000)
    units = round_units(cells.scales["amount"], cells._positions["amount"])
    assert [int(np.flatnonzero(unit)[1]) for unit in units] == [5, 10, 50, 100, 500]
