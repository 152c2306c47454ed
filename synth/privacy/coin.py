"""The party's private coin: which of a person's rows are used where a plan uses fewer than there are.

Every draw is a keyed hash of whose it is and its number among theirs. So what is drawn for one person depends on nobody
else's rows, not even on how many there are: a person more in the table changes nothing for the others.

The hash is SHA-256 of the key, which fills its first block, the number and the owner: a function that databases have,
too, so that an engine draws what we draw (fed_node/source/engines/people.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from synth.privacy.noise import NoiseSource

_KEY_BYTES = 32


class Coin:
    def __init__(self, noise: NoiseSource) -> None:
        """A key from a stream of its own; the same for the whole life of the object."""
        self._key = noise.child("whose rows are used").random_bytes(_KEY_BYTES)

    @property
    def prefix(self) -> str:
        """The secret beginning of what is hashed; for the party's own engine and for nobody else."""
        return f"{self._key.hex()}:"

    def draws(self, owners: Iterable[str], numbers: Iterable[int]) -> npt.NDArray[np.uint64]:
        """64 random bits for each owner's numbered thing."""
        drawn = (
            hashlib.sha256(f"{self.prefix}{number}:{owner}".encode()).digest()[:8]
            for owner, number in zip(owners, numbers, strict=True)
        )
        return np.frombuffer(b"".join(drawn), dtype=">u8").astype(np.uint64)  # in the order of the hashes themselves
