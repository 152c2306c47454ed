"""Which integer a Gaussian value rounds to, decided without error.

A magnitude is drawn by its tail: for U uniform on (0, 1), |X| = -Φ⁻¹(U / 2), and |X| σ rounds to k exactly if
tail(k) ≥ U > tail(k + 1), where tail(k) = erfc((k - ½) / (σ √2)). The first 63 bits of U leave an interval of width
2⁻⁶³ open. `nearest_magnitudes` inverts Φ in double precision and says where that is not enough to be certain;
`settled_magnitude` compares the whole interval with the tails in high precision, and takes further bits until it lies
within one cell. So the law is that of a rounded Gaussian, whatever the bits that were never needed.

How near to a boundary a double is trusted: scipy's Φ⁻¹ errs by less than 3·10⁻¹⁶ (1 + x) (measured against 200 bits),
the product with σ by 2⁻⁵³ of itself, and the open interval is at most 2⁻⁴⁵ wide in x for U ≥ 2⁻²⁰ (its width is
2⁻⁶⁴ / φ(x), and φ(x) ≥ x U / 2). The margin 2⁻⁴⁴ (1 + x) is more than seven times their sum. At σ = 2²⁶ one draw in
some 60,000 is settled the slow way.
"""

from collections.abc import Callable

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

FIRST_BITS = 63
MOST_SIGMA = 2.0**40  # beyond it no double is certain
_MARGIN = 2.0**-44
_FAR_OUT = 1 << 43  # first bits below this (one draw in 2^20) leave too wide an interval open
_ROUNDING = 1.5 * 2.0**52  # a double below 2^51 has no fraction once this was added; np.rint takes five times as long
_GUARD_BITS = 64


def nearest_magnitudes(sigma: float, first: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """round(|X| σ) for the first 63 bits of each U, and the places where that is not certain."""
    tail = first.astype(np.float64)
    tail += 0.5
    tail *= 2.0 ** -(FIRST_BITS + 1)
    scaled = ndtri(tail, out=tail)
    scaled *= -sigma
    nearest = scaled + _ROUNDING
    nearest -= _ROUNDING
    boundary = np.abs(scaled - nearest)  # ½ at a boundary
    scaled *= _MARGIN
    boundary += scaled
    unsettled = np.flatnonzero((boundary > 0.5 - _MARGIN * sigma) | (first < _FAR_OUT))
    return nearest.astype(np.int64), unsettled


def settled_magnitude(sigma: float, uniform: int, further_word: Callable[[], int]) -> int:
    """The same for one U, of which `uniform` is the first 63 bits, for certain."""
    bits = FIRST_BITS
    while True:
        with mpmath.workprec(bits + _GUARD_BITS):
            near = float(mpmath.ldexp(mpmath.mpf(uniform) + 0.5, -bits - 1))
            guess = round(-sigma * float(ndtri(near)))
            for magnitude in (guess, guess - 1, guess + 1):
                if magnitude >= 0 and _lies_within(sigma, uniform, bits, magnitude):
                    return magnitude
        uniform, bits = uniform << 64 | further_word(), bits + 64


def _lies_within(sigma: float, uniform: int, bits: int, magnitude: int) -> bool:
    """Whether all of [uniform, uniform + 1) · 2^-bits rounds to this magnitude, by more than mpmath may err."""
    slack = mpmath.ldexp(1, 8 - _GUARD_BITS)  # 2^8 units in the last place of a number below 2^(bits + 1)
    upper, lower = (_tail(sigma, magnitude + step, bits) for step in (0, 1))
    return bool(uniform + 1 <= upper - slack and uniform >= lower + slack)


def _tail(sigma: float, magnitude: int, bits: int) -> mpmath.mpf:
    """P(|X| σ ≥ magnitude - ½) · 2^bits."""
    return mpmath.ldexp(mpmath.erfc((magnitude - mpmath.mpf(0.5)) / (sigma * mpmath.sqrt(2))), bits)
