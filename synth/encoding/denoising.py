"""Distributions from noisy counts. Pure post-processing: nothing here touches a row.

Setting negative counts to zero keeps the positive half of the noise, which in a sparse histogram adds up to a large
share of the mass, much of it far from any row. Discrete columns are instead moved to the nearest distribution in
Euclidean distance, which takes the same amount off every cell. Along an ordered axis more is known: neighbouring cells
belong together, so a halving tree asks at every level whether a half holds more than its noise explains. A tail is
kept when it is significant as a whole, although none of its cells is, and an empty stretch is emptied.
"""

from __future__ import annotations

import numpy as np

from synth.encoding.scales import Floats

SIGNIFICANT = 3.0  # standard deviations of the noise in a half, below which it is empty; chosen on generated columns
OUTSTANDING = 4.0  # a single cell this far above zero is never taken for noise


def denoise(counts: Floats, sigma: float, ordered: bool) -> Floats:
    """Probabilities behind counts with independent noise of standard deviation `sigma` per cell."""
    total = float(counts.sum())
    if total <= 0:
        return np.full(len(counts), 1 / len(counts))
    if ordered and sigma > 0:
        found = np.zeros(len(counts))
        _share(counts, sigma, total, found)
        return found / total
    return _nearest_distribution(counts / total)


def _share(counts: Floats, sigma: float, mass: float, found: Floats) -> None:
    """Divide `mass` among the cells, halving; `found` is a view that is filled in place."""
    half = len(counts) // 2
    if half == 0:
        found[:] = mass
        return
    left, right = counts[:half], counts[half:]
    surplus = (mass - counts.sum()) / len(counts)  # levels above know the mass better than these cells alone
    held = np.array([left.sum() + surplus * len(left), right.sum() + surplus * len(right)])
    empty = [_is_noise(part, sum_, sigma) for part, sum_ in zip((left, right), held, strict=True)]
    if all(empty):
        found[:] = mass / len(counts)
        return
    held = np.where(empty, 0.0, np.maximum(held, 0.0))
    if held.sum() == 0:
        found[:] = mass / len(counts)
        return
    shares = mass * held / held.sum()
    for part, target, share in ((left, found[:half], shares[0]), (right, found[half:], shares[1])):
        if share > 0:
            _share(part, sigma, share, target)


def _is_noise(counts: Floats, held: float, sigma: float) -> bool:
    return bool(held < SIGNIFICANT * sigma * np.sqrt(len(counts)) and counts.max() < OUTSTANDING * sigma)


def _nearest_distribution(shares: Floats) -> Floats:
    """Euclidean projection onto the probability simplex (Duchi et al., ICML 2008)."""
    falling = np.sort(shares)[::-1]
    offsets = (np.cumsum(falling) - 1) / np.arange(1, len(shares) + 1)
    offset = offsets[np.flatnonzero(falling > offsets)[-1]]
    projected: Floats = np.maximum(shares - offset, 0.0)
    return projected
