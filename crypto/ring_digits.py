"""Elements of a ring as CKKS slots, so that counts can be masked first and encrypted afterwards.

All parties share one CKKS key. A party that gave it to the aggregator would show it every other party's ciphertext
alone, with only that party's share of the noise. Pairwise masks inside the ciphertext close this: what such a pair
could open is uniform. Each ring element is written in digits that fit a slot; the digits of a sum are added up again
modulo the ring, where the masks cancel. Exact, and no larger than unmasked counts of the same range in practice.

That an opened sum is whole says only that decoding makes sense. It is no proof of what was added: vouchers are.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crypto.errors import Forged, WrongShape
from crypto.masking import RingVector
from crypto.quantize import RingBits
from crypto.slots import slot_share

_WHOLE_TOLERANCE = 0.01


@dataclass(frozen=True)
class RingDigits:
    """Elements of the ring modulo 2^bits from each of ``parties`` parties."""

    bits: RingBits
    parties: int

    def __post_init__(self) -> None:
        slot_share(self.parties)

    @property
    def digit_bits(self) -> int:
        return math.floor(math.log2(slot_share(self.parties)))

    @property
    def digits(self) -> int:
        return -(-self.bits // self.digit_bits)

    def slots(self, entries: int) -> int:
        """How many slots a vector of this many entries takes."""
        return entries * self.digits

    def encode(self, vector: RingVector) -> NDArray[np.float64]:
        rest = vector.astype(np.uint64)
        rows = np.empty((self.digits, rest.size))
        for row in rows:
            row[:] = rest & np.uint64(2**self.digit_bits - 1)
            rest >>= np.uint64(self.digit_bits)
        return rows.ravel()

    def decode(self, total: NDArray[np.float64]) -> RingVector:
        """The sum in the ring, from the opened sum of the slots."""
        if total.ndim != 1 or total.size % self.digits:
            raise WrongShape(f"an opened sum must have {self.digits} slots for each entry")
        whole = np.rint(total)
        if np.abs(total - whole).max(initial=0.0) > _WHOLE_TOLERANCE or whole.min(initial=0.0) < 0:
            raise Forged("an opened sum of digits is not whole; a party encrypted something else than digits")
        rows = whole.astype(np.uint64).reshape(self.digits, -1)
        ring = np.zeros(rows.shape[1], dtype=np.uint64)
        for place, row in enumerate(rows):
            ring += row << np.uint64(place * self.digit_bits)  # wraps modulo 2^64, which the ring divides
        return ring if self.bits == 64 else ring.astype(np.uint32)
