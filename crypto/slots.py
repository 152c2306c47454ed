"""Reals as CKKS slots: which numbers a slot can hold, and how to make others fit.

A slot of the context in ``crypto.ckks`` wraps around silently near ±2^19. The sum over all parties stays within a
quarter of that, so one party may use ±SLOT_LIMIT / parties. Reals are multiplied by a power of two that fills this
range, which also makes the relative error of the encryption tiny. Counts are digits of masked ring elements
(``crypto.ring_digits``).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crypto.errors import OutOfRange
from crypto.ranges import power_of_two_within, require_parties, require_reals

SLOT_LIMIT = 2.0**17  # a quarter of the capacity 2^(60 - 40 - 1), for the sum over all parties
SLOT_ERROR = 2e-8  # per ciphertext; empirical, not proven: measured maximum 5.2e-9 over 4·10^5 slots
_MOST_PARTIES = 2**12  # each keeps at least five bits of a slot


@dataclass(frozen=True)
class SlotReals:
    """Reals within ±clip from each of ``parties`` parties."""

    clip: float
    parties: int

    def __post_init__(self) -> None:
        slot_share(self.parties)
        power_of_two_within(1.0, self.clip)

    @property
    def gain(self) -> float:
        """Slot units per unit."""
        return power_of_two_within(slot_share(self.parties), self.clip)

    @property
    def error_bound(self) -> float:
        """The largest difference to expect between the opened sum and the sum of the reals."""
        return self.parties * SLOT_ERROR / self.gain

    def slots(self, entries: int) -> int:
        """How many slots a vector of this many entries takes."""
        return entries

    def encode(self, values: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        require_reals(values, self.clip)
        return values.astype(np.float64) * self.gain

    def decode(self, total: NDArray[np.float64]) -> NDArray[np.float64]:
        return total / self.gain


def slot_share(parties: int) -> float:
    """The largest magnitude one of ``parties`` parties may put into a slot."""
    require_parties(parties)
    if parties > _MOST_PARTIES:
        raise OutOfRange(f"a CKKS sum has room for {_MOST_PARTIES} parties, not {parties}; use masked sums")
    return SLOT_LIMIT / parties
