"""The Skellam distribution in exact arithmetic: the one noise whose shares add up to itself.

Integer noise of K parties must sum to a distribution we can account for. The difference of two Poisson variables
does: variances add, nothing else changes. Its probabilities are scaled Bessel functions, P(k) ∝ I_k(v) for
variance v, and neighbours obey I_{k-1} - I_{k+1} = (2k/v) I_k. Run downwards from far in the tail, that recurrence
gives every ratio r_k = P(k)/P(k-1) with errors that shrink at each step (Miller's algorithm). We run it in
integers, so the sampling table is the same on every machine and its distance from the true distribution is a
number that can be charged to δ instead of a hope about floating point.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from synth.errors import PrivacyError

UNIFORM_BITS = 255  # precision of a uniform draw; 63 bits are drawn at once, the rest only on a tie
_FIRST_BITS = 63
_FRACTION_BITS = 448  # of the fixed-point arithmetic; far below the tail 2^-UNIFORM_BITS
MAX_VARIANCE = 1e9  # a table of 600,000 entries, about three seconds to build


@dataclass(frozen=True, eq=False)
class Skellam:
    """Exact tables of one variance; entry j - 1 of each tuple or array belongs to magnitude j ≥ 1."""

    variance: float
    ratios: NDArray[np.float64]  # r_j = P(j)/P(j-1), strictly decreasing
    magnitudes: NDArray[np.float64]  # P(X = j), for one sign
    zero: float  # P(X = 0)
    tails: tuple[int, ...]  # floor(2^UNIFORM_BITS · P(|X| ≥ j)), decreasing
    first_words: NDArray[np.uint64]  # the leading 63 bits of `tails`, increasing: for searchsorted

    @property
    def sampling_error(self) -> float:
        """Total variation distance between one draw and the true distribution.

        Each tail is rounded down by less than 2^-UNIFORM_BITS, and what lies beyond the table is smaller still.
        """
        return math.ldexp(len(self.tails) + 1, -UNIFORM_BITS)


@lru_cache(maxsize=16)
def skellam(variance: float) -> Skellam:
    """The tables for one variance (counts²)."""
    if not 0 < variance <= MAX_VARIANCE:
        raise PrivacyError(f"Skellam noise needs a variance above 0 and at most {MAX_VARIANCE:g}, got {variance}")
    ratios = _ratios(variance)
    weights, weight = [], 1 << _FRACTION_BITS  # P(j) in units of P(0)
    for ratio in ratios:
        weight = weight * ratio >> _FRACTION_BITS
        weights.append(weight)
    total = (1 << _FRACTION_BITS) + 2 * sum(weights)
    tails, above = [], 0
    for weight in reversed(weights):
        above += 2 * weight
        tails.append((above << UNIFORM_BITS) // total)
    visible = [tail for tail in tails if tail > 0]  # increasing: from the largest magnitude down to 1
    return Skellam(
        variance=variance,
        ratios=np.array([ratio / (1 << _FRACTION_BITS) for ratio in ratios]),
        magnitudes=np.array([weight / total for weight in weights]),
        zero=(1 << _FRACTION_BITS) / total,
        tails=tuple(reversed(visible)),
        first_words=np.array([tail >> (UNIFORM_BITS - _FIRST_BITS) for tail in visible], dtype=np.uint64),
    )


def _ratios(variance: float) -> list[int]:
    """r_1, r_2, … in fixed point, up to a magnitude whose tail probability is below 2^-UNIFORM_BITS / 2.

    Bernstein: P(|X| ≥ t) ≤ 2 exp(-t² / 2(v + t/3)). The start value 0 is wrong in its first few entries only.
    """
    exponent = (UNIFORM_BITS + 2) * math.log(2)
    reach = math.ceil(exponent / 3 + math.sqrt((exponent / 3) ** 2 + 2 * exponent * variance))
    numerator, denominator = variance.as_integer_ratio()
    ratio, ratios = 0, []
    for j in range(reach, 0, -1):
        # r_j = v / (2j + v r_{j+1})
        ratio = (numerator << 2 * _FRACTION_BITS) // ((2 * j * denominator << _FRACTION_BITS) + numerator * ratio)
        ratios.append(ratio)
    return ratios[::-1]
