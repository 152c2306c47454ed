"""Where in its bin each number of a row lies, so that numbers that rise together across bins do so within them, too.

A model of bins says nothing of what is inside one. Values drawn there by themselves blur every strong relation of two
numbers: last month's bill and this month's agree to a bin and no further. What bins do show is how columns go together
on the whole, and a Gaussian copula carries that inwards: behind every number stands a normal one that lies in its bin's
interval; their correlations are found from these, and these are drawn anew given the others, in turns (Gibbs sampling
of an ordinal probit, as in Hoff, Annals of Applied Statistics 2007). Only ranks are used: what values a bin holds is
the histogram's business. It reads drawn rows alone, so it is free.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.special import ndtr, ndtri

from synth.encoding.contingency import Ints
from synth.encoding.scales import Floats

FEWEST_ROWS = 1_000  # fewer say little of correlations
RELATED = 0.3  # correlation with any other column below which a number is placed at random
SWEEPS = 8
FARTHEST = 8.0  # normal numbers lie within ± this
RIDGE = 1e-3  # keeps correlations of columns that say the same invertible


def placed(bins: Mapping[str, Ints], sizes: Mapping[str, int], rng: np.random.Generator) -> dict[str, Floats]:
    """For columns that are related to others, a number for every row by whose rank it is placed within its bin. Bins
    from `sizes` on (of missing cells) lie anywhere."""
    if not bins or len(next(iter(bins.values()))) < FEWEST_ROWS:
        return {}
    ends = {name: _intervals(found, sizes[name]) for name, found in bins.items()}
    middles = {name: ndtri((low + high) / 2) for name, (low, high) in ends.items()}
    related = _related(middles)
    if len(related) < 2:
        return {}
    first, last = (np.array([ends[name][side] for name in related]) for side in (0, 1))
    low, high = (np.clip(ndtri(edge), -FARTHEST, FARTHEST) for edge in (first, last))
    hidden = np.clip(ndtri(first + rng.random(first.shape) * (last - first)), low, high)
    for _ in range(SWEEPS):
        correlations = (np.corrcoef(hidden) + RIDGE * np.eye(len(related))) / (1 + RIDGE)
        precision = np.linalg.inv(correlations)
        for column in rng.permutation(len(related)):
            variance = 1 / precision[column, column]
            mean = hidden[column] - variance * (precision[column] @ hidden)
            hidden[column] = _truncated(mean, variance**0.5, low[column], high[column], rng)
    return dict(zip(related, hidden, strict=True))


def _intervals(found: Ints, size: int) -> tuple[Floats, Floats]:
    """The part of (0, 1) that a row's bin takes, by how many rows every bin has; all of it where a cell is missing."""
    counts = np.bincount(found, minlength=size)[:size]
    edges = np.append(0.0, np.cumsum(counts)) / max(int(counts.sum()), 1)
    known = found < size
    inside = np.where(known, found, 0)
    return np.where(known, edges[inside], 0.0), np.where(known, edges[inside + 1], 1.0)


def _related(middles: Mapping[str, Floats]) -> list[str]:
    """Columns whose bins go with another column's."""
    varied = [name for name, values in middles.items() if values.std() > 0]
    if len(varied) < 2:
        return []
    strength = np.abs(np.corrcoef([middles[name] for name in varied])) - np.eye(len(varied))
    return [name for name, most in zip(varied, strength.max(axis=0), strict=True) if most >= RELATED]


def _truncated(mean: Floats, deviation: float, low: Floats, high: Floats, rng: np.random.Generator) -> Floats:
    """Normal numbers within intervals, drawn in the tail where both ends lie on one side, which is where digits are."""
    above = low > mean
    near, far = (low - mean) / deviation, (high - mean) / deviation
    first, last = np.where(above, -far, near), np.where(above, -near, far)
    start, end = ndtr(first), ndtr(last)
    drawn = ndtri(start + rng.random(len(mean)) * (end - start))
    found: Floats = np.clip(mean + deviation * np.where(above, -drawn, drawn), low, high)
    return found
