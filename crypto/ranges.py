"""The checks every vector passes before it is quantised or encrypted.

A value beyond the agreed range does not fail later: the sum wraps around and looks like any other number. So it
is refused here, and the refusal says what the range is but nothing about the vector, which is private.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crypto.errors import NotFinite, OutOfRange, TooFewParties, WrongShape
from crypto.rounds import FEWEST_PARTIES

_SMALLEST_CLIP = 2.0**-64
_LARGEST_CLIP = 2.0**64


def require_reals(values: NDArray[np.floating[Any]], limit: float) -> None:
    """One dimension, floating point, finite and within ±limit."""
    if not np.issubdtype(values.dtype, np.floating) or values.ndim != 1 or values.size == 0:
        raise WrongShape("a vector of reals must be floating point, of one dimension, with at least one entry")
    largest = float(max(values.max(), -values.min()))  # NaN and infinity survive max and min
    if not math.isfinite(largest):
        raise NotFinite("a vector contains NaN or infinity; nothing was sent")
    if largest > limit:
        raise OutOfRange(f"a vector has an entry beyond ±{limit:g}; clip it or declare a wider range")


def require_integers(values: NDArray[np.integer[Any]], limit: int) -> None:
    """One dimension, integers within ±limit."""
    if not np.issubdtype(values.dtype, np.integer) or values.ndim != 1 or values.size == 0:
        raise WrongShape("a vector of counts must be integers, of one dimension, with at least one entry")
    if int(values.max()) > limit or int(values.min()) < -limit:
        raise OutOfRange(f"a vector has a count beyond ±{limit}; declare a higher limit in the plan")


def require_parties(parties: int) -> None:
    if parties < FEWEST_PARTIES:
        raise TooFewParties(f"a secure sum is over at least {FEWEST_PARTIES} parties, not {parties}")


def require_limit(limit: int, parties: int, capacity: int) -> None:
    """Counts up to ``limit`` from this many parties must add up within ``capacity``."""
    if limit < 1:
        raise OutOfRange("the limit of a count must be at least 1")
    if limit * parties > capacity:
        raise OutOfRange(f"counts up to {limit} from {parties} parties do not fit: at most {capacity // parties}")


def power_of_two_within(headroom: float, clip: float) -> float:
    """The largest power of two g with g·clip ≤ headroom: multiplying by it is exact in floating point."""
    if not _SMALLEST_CLIP <= clip <= _LARGEST_CLIP:
        raise OutOfRange("the clip range must be a number between 2^-64 and 2^64")
    gain = 2.0 ** math.floor(math.log2(headroom / clip))
    return gain if gain * clip <= headroom else gain / 2
