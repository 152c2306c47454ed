"""What a party's rows can do where several parties hold columns of the same people."""

from __future__ import annotations

from abc import abstractmethod
from math import ceil, sqrt

import numpy as np
import numpy.typing as npt

from synth.encoding.rows import Rows
from synth.privacy.noise import NoiseSource

Tokens = npt.NDArray[np.uint64]  # keyed hashes of people's keys
SIGMAS = 10.0  # by which the noise is moved upwards, so that nobody is ever taken away: beyond lies 1e-22


def room(variance: float | None) -> int:
    """People that do not exist, expected in each count of people; 0 where counts are exact."""
    return 0 if variance is None else ceil(SIGMAS * sqrt(variance)) + 10


def strangers(noise: NoiseSource, variance: float | None) -> int:
    """How many of them are added to one count: never less than none, and at most twice as many as expected."""
    if variance is None:
        return 0
    most = room(variance)
    return int(np.clip(noise.skellam(variance, 1)[0], -most, most)) + most


class LinkedRows(Rows):
    """Rows in the order of people that all parties agreed on; a place may hold nobody."""

    @abstractmethod
    def tokens(self, noise: NoiseSource, variance: float | None) -> Tokens:
        """Keyed hashes of this party's people, among those of people that do not exist; sorted."""

    @abstractmethod
    def people(self, noise: NoiseSource, variance: float | None) -> int:
        """Places for all people, and for some that do not exist."""

    @abstractmethod
    def match(self, kept: Tokens | int) -> bytes:
        """Take these people, or so many places, in this order; the party's seal under who is where."""

    @abstractmethod
    def agree(self, seals: dict[str, bytes]) -> None:
        """Go on if every other party's seal says the same of who is where; refuse otherwise."""
