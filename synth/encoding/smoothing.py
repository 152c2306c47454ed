"""A smooth curve through noisy counts of neighbouring cells, as smooth as their noise asks for.

A halving tree (synth/encoding/denoising.py) finds where a column has rows, but what it says of a smooth shape is a
staircase. A spline says that better, and a staircase is better where a column is rough; the mean of both has less error
than either, on smooth, rough and heaped columns alike (docs/decisions/0012-tables-as-they-are.md). How smooth: by
Stein's estimate of the error, which needs only the counts and their noise.
"""

from __future__ import annotations

import numpy as np
from scipy.fft import dct, idct

from synth.encoding.scales import Floats

FEWEST = 5  # cells that have a shape
STIFFNESS = 10.0 ** np.arange(-2.0, 9.0, 0.5)  # of the spline: the candidates
OUTLIER = 3.0  # standard deviations of the noise beyond which a count is no part of the curve
ROUNDS = 4  # of setting such counts aside and drawing the curve anew


def smoothed(counts: Floats, sigma: float) -> Floats:
    """None is negative. Counts far from the curve are left as they are."""
    if len(counts) < FEWEST:
        return np.maximum(counts, 0.0)
    curve = _spline(counts, sigma)
    for _ in range(ROUNDS):
        curve = _spline(np.where(np.abs(counts - curve) > OUTLIER * sigma, curve, counts), sigma)
    found: Floats = np.maximum(np.where(np.abs(counts - curve) > OUTLIER * sigma, counts, curve), 0.0)
    return found


def _spline(counts: Floats, sigma: float) -> Floats:
    """Least squares with a penalty on bends, which cosines diagonalise; the stiffness of the least estimated error."""
    waves = dct(counts, norm="ortho")
    bends = (2 - 2 * np.cos(np.pi * np.arange(len(counts)) / len(counts))) ** 2
    kept = 1 / (1 + STIFFNESS[:, None] * bends)  # (candidates, waves)
    errors = (((1 - kept) * waves) ** 2).sum(axis=1) + 2 * sigma**2 * kept.sum(axis=1)
    found: Floats = idct(kept[int(np.argmin(errors))] * waves, norm="ortho")
    return found
