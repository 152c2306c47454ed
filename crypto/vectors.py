"""One answer is one vector: its counts, which must come out exact, then its reals, which may be rounded.

``MaskedVectors`` puts both into one ring of 64 bits. ``EncryptedVectors`` puts both into the slots of one ciphertext,
the counts as digits of masked ring elements. Ranges are public, the same for every party, and checked before
anything is encoded. The last real is the answer's weight, so there is always at least one.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crypto.errors import WrongShape
from crypto.masking import RingVector
from crypto.quantize import Counts, FixedPoint, Residues, narrowest_counts
from crypto.ring_digits import RingDigits
from crypto.slots import SlotReals

CountVector = NDArray[np.integer[Any]]
RealVector = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Shape:
    """How many counts and reals a vector has, how large they may be, and how many parties add one."""

    counts: int
    reals: int
    count_limit: int | None  # None: the counts are shares modulo 2^32, of any size
    real_clip: float
    parties: int

    def require(self, counts: CountVector, reals: RealVector) -> None:
        if counts.shape != (self.counts,) or reals.shape != (self.reals,) or not self.reals:
            raise WrongShape(f"an answer must have {self.counts} counts and {self.reals} reals")


@dataclass(frozen=True)
class MaskedVectors:
    """Ring elements modulo 2^64: counts as they are, reals in fixed point."""

    shape: Shape

    @property
    def size(self) -> int:
        return self.shape.counts + self.shape.reals

    @property
    def error_bound(self) -> float:
        return self._reals.error_bound

    def encode(self, counts: CountVector, reals: RealVector) -> RingVector:
        self.shape.require(counts, reals)
        parts = [self._ring(counts)] if counts.size else []
        return np.concatenate([*parts, self._reals.encode(reals)])

    def decode(self, total: RingVector) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        if total.shape != (self.size,):
            raise WrongShape(f"an opened sum must have {self.size} entries")
        counts, reals = total[: self.shape.counts], self._reals.decode(total[self.shape.counts :])
        if self.shape.count_limit is None:
            return Residues().decode_wide(counts), reals
        return self._counts(self.shape.count_limit).decode(counts), reals

    def _ring(self, counts: CountVector) -> RingVector:
        if self.shape.count_limit is None:
            return Residues().encode_wide(counts)
        return self._counts(self.shape.count_limit).encode(counts)

    def _counts(self, limit: int) -> Counts:
        return Counts(limit, self.shape.parties, 64)

    @property
    def _reals(self) -> FixedPoint:
        return FixedPoint(self.shape.real_clip, self.shape.parties, 64)


@dataclass(frozen=True)
class EncryptedVectors:
    """Slots: the digits of masked counts, then reals."""

    shape: Shape

    @property
    def size(self) -> int:
        return self._digits.slots(self.shape.counts) + self.shape.reals

    @property
    def step(self) -> float:
        """Opened reals are rounded to multiples of this, a little more than the error of the encryption.

        The exact error would help to find the key (Li and Micciancio 2021); rounded away, it is not given out.
        """
        return 2.0 ** math.ceil(math.log2(self._reals.error_bound))

    @property
    def error_bound(self) -> float:
        return self._reals.error_bound + self.step / 2

    def ring(self, counts: CountVector) -> RingVector:
        """The counts as ring elements, for masking."""
        return self._counts.encode(counts)

    def slots(self, masked_counts: RingVector, reals: RealVector) -> NDArray[np.float64]:
        self.shape.require(masked_counts, reals)
        digits = [self._digits.encode(masked_counts)] if masked_counts.size else []
        return np.concatenate([*digits, self._reals.encode(reals)])

    def parts(self, total: NDArray[np.float64]) -> tuple[RingVector, NDArray[np.float64]]:
        """The sum of the counts in their ring, where own masks may still be on it, and the rounded sum of the reals."""
        if total.shape != (self.size,):
            raise WrongShape(f"an opened sum must have {self.size} slots")
        split = self._digits.slots(self.shape.counts)
        reals = np.rint(self._reals.decode(total[split:]) / self.step) * self.step
        return self._digits.decode(total[:split]), reals

    def counts(self, ring: RingVector) -> NDArray[np.int64]:
        """The sum of the counts, every mask being off."""
        return self._counts.decode(ring)

    @property
    def _counts(self) -> Counts | Residues:
        limit = self.shape.count_limit
        return Residues() if limit is None else narrowest_counts(limit, self.shape.parties)

    @property
    def _digits(self) -> RingDigits:
        return RingDigits(self._counts.bits, self.shape.parties)

    @property
    def _reals(self) -> SlotReals:
        return SlotReals(self.shape.real_clip, self.shape.parties)
