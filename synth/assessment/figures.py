"""From noisy counts to figures with intervals: arithmetic on what was released, free of charge.

Intervals speak of the noise alone: each end is missed with a chance of one in twenty, over the noise, the rows being as
they are. Counts are never rounded up to 0 first: that would turn noise into bias.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from synth.assessment.record import Figure
from synth.encoding.scales import Floats

ONE_SIDED = 1.645  # standard deviations that noise exceeds one time in twenty
EITHER = 1.96  # the same where the better of two bounds is taken
MEAN_SIZE = np.sqrt(2 / np.pi)  # of noise, in standard deviations
REDRAWS = 500
FEWEST_ROWS = 1.0


def row_count(tables: Sequence[Floats]) -> float:
    """Rows, from noisy tables that each hold all of them: the smallest tables tell best."""
    weights = np.array([1 / table.size for table in tables])
    return max(float(np.array([table.sum() for table in tables]) @ weights / weights.sum()), FEWEST_ROWS)


def variation(real: Sequence[Floats], synthetic: Sequence[Floats], rows: float, variances: Sequence[float]) -> Figure:
    """Total variation distance, mean over tables of noisy counts of `rows` real rows; `variances` by table.

    With differences d and noise e, both over cells: ½Σ|d + e| is too large by what the noise adds, and its mean bounds
    ½Σ|d| from above; ¼kΣ((d + e)² − σ²) over k cells is right in the mean, and bounds the square (Cauchy-Schwarz).
    The estimate scales the first by what the second says is not noise: exact for bell-shaped differences."""
    gaps = [table / rows - made / made.sum() for table, made in zip(real, synthetic, strict=True)]
    noises = [variance / rows**2 for variance in variances]
    seen = _mean([np.abs(gap).sum() / 2 for gap in gaps])
    if not any(noises):
        return Figure(value=seen, low=seen, high=seen, noise_floor=0.0)
    each = list(zip(gaps, noises, strict=True))
    squares = np.array([gap.size / 4 * (np.square(gap).sum() - gap.size * noise) for gap, noise in each])
    own = np.array([gap.size**2 / 4 * noise for gap, noise in each])
    square, expected = float(squares.mean()), float(own.mean())
    value = seen * np.sqrt(max(square, 0.0) / (max(square, 0.0) + expected))
    floor = _mean([gap.size / 2 * MEAN_SIZE * np.sqrt(noise) for gap, noise in each])
    wobble = np.sqrt(sum(gap.size * noise for gap, noise in each)) / 2 / len(gaps)  # deviation of `seen`, at most
    high = min(seen + EITHER * wobble, np.sqrt(max(square + EITHER * _square_error(each), 0.0)))
    low = seen - floor - ONE_SIDED * wobble * np.sqrt(1 - 2 / np.pi)
    return _figure(value, min(low, value), max(high, value), floor)


def _square_error(gaps: Sequence[tuple[Floats, float]]) -> float:
    """The standard deviation of the mean of the squares above."""
    total = 0.0
    for gap, noise in gaps:
        real = max(float(np.square(gap).sum()) - gap.size * noise, 0.0)
        total += (gap.size / 4) ** 2 * (2 * gap.size * noise**2 + 4 * noise * real)
    return float(np.sqrt(total)) / len(gaps)


def auroc(counts: Floats, variance: float, seed: int) -> Figure:
    """From counts (judged classes, 2, buckets): rows outside the class and rows in it, by rising score.

    Rows that share a bucket count as ties. Several classes: weighted by how many rows they have."""
    value = float(_areas(counts[None])[0])
    if variance == 0:
        return _figure(value, value, value)
    redraws = np.random.default_rng(seed).normal(0.0, np.sqrt(variance), (REDRAWS, *counts.shape))
    error = float(np.std(_areas(counts + redraws)))
    return _figure(value, value - ONE_SIDED * error, value + ONE_SIDED * error)


def _areas(counts: Floats) -> NDArray[np.float64]:
    """(…, classes, 2, buckets) → the area of each set of histograms. A class without rows has no weight; none: ½."""
    outside, inside = counts[..., 0, :], counts[..., 1, :]
    below = np.cumsum(outside, axis=-1) - outside / 2
    totals = outside.sum(axis=-1), inside.sum(axis=-1)
    exists = (totals[0] >= FEWEST_ROWS) & (totals[1] >= FEWEST_ROWS)
    areas = (inside * below).sum(axis=-1) / np.where(exists, totals[0] * totals[1], 1.0)
    weights = np.where(exists, totals[1], 0.0)
    sums = weights.sum(axis=-1)
    mean = (np.clip(areas, 0.0, 1.0) * weights).sum(axis=-1) / np.where(sums > 0, sums, 1.0)
    return np.where(sums > 0, mean, 0.5)


def share(flags: Floats, variance: float) -> Figure:
    """The share of rows in the second cell of a yes-or-no histogram (no, yes)."""
    rows = max(float(flags.sum()), FEWEST_ROWS)
    value = float(np.clip(flags[1] / rows, 0.0, 1.0))
    error = np.sqrt(variance * (value**2 + (1 - value) ** 2)) / rows
    return _figure(value, value - ONE_SIDED * error, value + ONE_SIDED * error)


def excess(copied: Figure, by_chance: float, rows: float, strangers: int) -> Figure:
    """Copies beyond coincidence. Here chance itself is an error too: other strangers would have met other rows."""
    spread = ONE_SIDED * np.sqrt(by_chance * (1 - by_chance) * (1 / rows + 1 / strangers))
    down = np.hypot(copied.value - copied.low, spread)
    up = np.hypot(copied.high - copied.value, spread)
    value = copied.value - by_chance
    return Figure(value=float(value), low=float(value - down), high=float(value + up))


def _figure(value: float, low: float, high: float, floor: float | None = None) -> Figure:
    """All of these figures are shares or areas: between 0 and 1."""
    value, low, high = (float(np.clip(each, 0.0, 1.0)) for each in (value, low, high))
    return Figure(value=value, low=low, high=high, noise_floor=None if floor is None else float(floor))


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))
