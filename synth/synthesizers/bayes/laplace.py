"""Laplace noise in shares: every party draws a little, and the sum is one Laplace variable.

A geometric variable is a sum of any number of equal negative binomial ones, and the difference of two geometrics is the
discrete Laplace distribution, P(k) ∝ exp(-|k| / scale). So n parties that add differences of NB(1/n) variables make
together what the thesis assumed a protocol for secure multiplication would make. Integers, because floating-point
Laplace noise can be read backwards.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from synth.encoding.contingency import Ints
from synth.encoding.scales import Floats
from synth.privacy.noise import NoiseSource

UNIFORM_BITS = 53  # of a draw
TAIL = 40.0  # scales up to which draws are distinguished: e^-40 is below 2^-53


def laplace_share(scale: float, parties: int, count: int, noise: NoiseSource) -> Ints:
    """One of `parties` shares of discrete Laplace noise on `count` counts."""
    table = _cumulative(scale, parties)
    words = noise.uint64(2 * count) >> np.uint64(64 - UNIFORM_BITS)
    draws = np.searchsorted(table, (words.astype(np.float64) + 0.5) * 2.0**-UNIFORM_BITS)
    return np.asarray(draws[:count] - draws[count:], dtype=np.int64)


def laplace_variance(scale: float) -> float:
    """Of the discrete Laplace distribution (counts²); close to 2 scale²."""
    ratio = float(np.exp(-1 / scale))
    return 2 * ratio / (1 - ratio) ** 2


@lru_cache(maxsize=16)
def _cumulative(scale: float, parties: int) -> Floats:
    """P(X ≤ k) of a negative binomial variable with shape 1/parties and ratio exp(-1/scale)."""
    shape, ratio = 1 / parties, float(np.exp(-1 / scale))
    steps = np.arange(1, int(np.ceil(TAIL * scale)) + 2)
    masses = (1 - ratio) ** shape * np.cumprod(np.append(1.0, (steps - 1 + shape) / steps * ratio))
    found: Floats = np.cumsum(masses)
    return found
