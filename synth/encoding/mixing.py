"""Words mixed beyond recognition, and luck that belongs to a row's number: no row can move another's."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]


def mixed(words: Words) -> Words:
    """Steele, Lea and Flood's SplitMix64: every bit of the input moves every bit of the output."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def uniforms(seed: Words, purpose: int, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
    """A number in [0, 1) for each row number, the same whenever it is asked for."""
    words = mixed(np.full(len(numbers), purpose, dtype=np.uint64))
    for part in seed:
        words = mixed(words ^ part)
    words = mixed(words ^ mixed(numbers.astype(np.uint64)))
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
