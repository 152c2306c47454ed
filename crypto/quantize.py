"""Reals and counts as elements of the ring of integers modulo 2^32 or 2^64, so that masks can hide them.

A real is multiplied by a power of two and rounded; a count is taken as it is. Negative numbers are the upper
half of the ring. The scale leaves room for the sum of all parties, which therefore cannot wrap around, and the
sum's only error is the rounding of each party: at most half a step each, ``error_bound`` together. At most 53
bits are used, so that the opened sum is an exact float64.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from crypto.errors import WrongShape
from crypto.masking import RingVector
from crypto.ranges import (
    power_of_two_within,
    require_integers,
    require_limit,
    require_parties,
    require_reals,
)

RingBits = Literal[32, 64]
_FLOAT64_BITS = 53
_SIGNED: dict[int, np.dtype[np.signedinteger[Any]]] = {32: np.dtype("<i4"), 64: np.dtype("<i8")}
_UNSIGNED: dict[int, np.dtype[np.unsignedinteger[Any]]] = {32: np.dtype("<u4"), 64: np.dtype("<u8")}


@dataclass(frozen=True)
class FixedPoint:
    """Reals within ±clip from each of ``parties`` parties."""

    clip: float
    parties: int
    bits: RingBits = 64

    def __post_init__(self) -> None:
        require_parties(self.parties)
        power_of_two_within(1.0, self.clip)

    @property
    def scale(self) -> float:
        """Ring steps per unit."""
        largest_sum = min(2**_FLOAT64_BITS, 2 ** (self.bits - 1) - 1)
        return power_of_two_within(largest_sum // self.parties, self.clip)

    @property
    def error_bound(self) -> float:
        """The largest possible difference between the opened sum and the sum of the reals."""
        return self.parties / (2 * self.scale)

    def encode(self, values: NDArray[np.floating[Any]]) -> RingVector:
        require_reals(values, self.clip)
        steps = values.astype(np.float64)
        steps *= self.scale
        np.rint(steps, out=steps)
        return steps.astype(_SIGNED[self.bits]).view(_UNSIGNED[self.bits])

    def decode(self, total: RingVector) -> NDArray[np.float64]:
        """The sum of the reals, from the opened sum of the encoded vectors."""
        return _signed(total, self.bits) / self.scale


@dataclass(frozen=True)
class Counts:
    """Integers within ±limit from each of ``parties`` parties; the sum is exact."""

    limit: int
    parties: int
    bits: RingBits = 64

    def __post_init__(self) -> None:
        require_parties(self.parties)
        require_limit(self.limit, self.parties, 2 ** (self.bits - 1) - 1)

    def encode(self, values: NDArray[np.integer[Any]]) -> RingVector:
        require_integers(values, self.limit)
        return values.astype(_SIGNED[self.bits]).view(_UNSIGNED[self.bits])

    def decode(self, total: RingVector) -> NDArray[np.int64]:
        """The sum of the counts, from the opened sum of the encoded vectors."""
        return _signed(total, self.bits).astype(np.int64)


@dataclass(frozen=True)
class Residues:
    """Elements of the ring modulo 2^32 as they are: shares of counts, each uniform, whose sum is the count.

    There is no range to check, and no carry may survive the sum: in a wider ring they stand in its upper half, where
    what exceeds 2^32 falls off."""

    bits: RingBits = 32

    def encode(self, values: NDArray[np.integer[Any]]) -> RingVector:
        return values.astype(_UNSIGNED[32])

    def decode(self, total: RingVector) -> NDArray[np.int64]:
        """The sum, of which |sum| < 2^31 is taken for granted."""
        return _signed(total, 32).astype(np.int64)

    def encode_wide(self, values: NDArray[np.integer[Any]]) -> RingVector:
        return self.encode(values).astype(_UNSIGNED[64]) << np.uint64(32)

    def decode_wide(self, total: RingVector) -> NDArray[np.int64]:
        return self.decode((total >> np.uint64(32)).astype(_UNSIGNED[32]))


def narrowest_fixed_point(clip: float, parties: int, *, relative_error: float = 1e-7) -> FixedPoint:
    """The 32-bit ring where its error is at most this part of the clip range, else the 64-bit ring."""
    narrow = FixedPoint(clip, parties, 32)
    return narrow if narrow.error_bound <= relative_error * clip else FixedPoint(clip, parties, 64)


def narrowest_counts(limit: int, parties: int) -> Counts:
    """The 32-bit ring where every sum fits, else the 64-bit ring."""
    return Counts(limit, parties, 32 if limit * parties < 2**31 else 64)


def _signed(total: RingVector, bits: RingBits) -> NDArray[np.signedinteger[Any]]:
    if total.dtype != _UNSIGNED[bits]:
        raise WrongShape(f"an opened sum of the {bits}-bit ring was expected, not one of type {total.dtype}")
    return total.view(_SIGNED[bits])
