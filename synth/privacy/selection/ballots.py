"""Casting votes: what clients would like to change becomes a sum of signed votes, and nothing else is looked at.

All luck of a vote is drawn before its client's wishes are seen and does not depend on them: a sign, the coordinates
it may name, how many of the client's own it will hold, and at which places of the client's list and of the rest they
stand. Where wishes are equal the order of the drawn coordinates decides, which is luck; wishes that are no numbers
count as 0. So a client without any rows votes like everybody else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synth.errors import PrivacyError
from synth.privacy.noise import NoiseSource
from synth.privacy.selection.event import Votes
from synth.privacy.selection.law import DRAW_BITS, held_in, overlap_bounds

SEED_WORDS = 4

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class BallotBox:
    """One step's votes under its event. `everywhere`: a vote may name any weight (perturbed sampling), and its law
    knows only the share `top` / `dimensions` of them."""

    event: Votes
    everywhere: bool
    source: NoiseSource

    def __post_init__(self) -> None:
        if self.everywhere and self.event.chosen > 1:
            raise PrivacyError("votes for several weights at once need a fixed number of weights to choose among")
        if self.everywhere and 2 * self.event.top > self.event.dimensions:  # then a smaller share would tell more
            raise PrivacyError("votes among all weights are for at most half of them; lower the share")

    def cast(self, wishes: NDArray[np.float64], truths: NDArray[np.bool_]) -> tuple[Ints, int]:
        """[weights]: the sum of the votes of clients who wish for these changes, [clients, weights]; and how many of
        them say yes, if the event has a bit."""
        return self._votes(np.nan_to_num(wishes, nan=0.0, posinf=0.0, neginf=0.0)), self._yes(truths)

    def _votes(self, wishes: NDArray[np.float64]) -> Ints:
        """Everywhere, one order of the weights is luck enough for all."""
        clients, weights = wishes.shape
        dimensions, top = self._choice(weights)
        size = max(weights, dimensions)
        total = np.zeros(size, dtype=np.int64)  # weights that do not exist come last
        luck = np.random.default_rng(self.source.child("coordinates").uint64(SEED_WORDS))  # no secret, only luck
        among, secret = luck.permutation(size), self.source.child("ballots")
        padded = np.pad(wishes, ((0, 0), (0, size - weights)))
        for client in range(clients):
            among = among if self.everywhere else luck.permutation(size)
            chosen, sign = among[:dimensions], 1 - 2 * secret.below(2)
            order = chosen[np.argpartition(-sign * padded[client, chosen], top)]
            total[self._named(order[:top], order[top:], secret)] += sign
        return total[:weights]

    def _yes(self, truths: NDArray[np.bool_]) -> int:
        """By randomised response."""
        if not self.event.bit_epsilon:
            return 0
        secret, bounds = self.source.child("bits"), overlap_bounds(2, 1, 1, 1, self.event.bit_epsilon)
        honest = [held_in(secret.below(1 << DRAW_BITS), bounds) == 1 for _ in truths]
        return int((truths == np.array(honest)).sum())

    def _named(self, own: Ints, rest: Ints, secret: NoiseSource) -> Ints:
        """The coordinates of one vote, of which some are the client's own."""
        event = self.event
        bounds = overlap_bounds(len(own) + len(rest), len(own), event.chosen, event.threshold, event.epsilon)
        held = held_in(secret.below(1 << DRAW_BITS), bounds)
        places = secret.distinct_below(len(own), held), secret.distinct_below(len(rest), event.chosen - held)
        return np.concatenate([own[places[0]], rest[places[1]]]).astype(np.int64)

    def _choice(self, size: int) -> tuple[int, int]:
        """Among how many weights, and how many of them a client would vote for. Everywhere these are no more than the
        event's share, which up to a half tells less than the share itself (r / (1 + (e^ε - 1) r) rises with r)."""
        event = self.event
        if not self.everywhere:
            return event.dimensions, event.top
        top = size * event.top // event.dimensions
        if top < 1:
            raise PrivacyError(f"a share of {event.top / event.dimensions:g} of {size} weights is none; vote for more")
        return size, top
