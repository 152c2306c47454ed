"""Which parties make cross tables together, who deals for them, and how large their matrices are: all of it public.

A function of the plan, of the bins that were asked for and of the number of places, the same on every side.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol

from synth.encoding.bins import Bins
from synth.encoding.contingency import Clique
from synth.errors import ProtocolError
from synth.interface import Ask, Inquiry
from synth.linkage.settings import AGGREGATOR, NOBODY_DEALS
from synth.plan import Plan
from synth.privacy.events import CountNoise

Pair = tuple[str, str]  # by name, the first one first


SHARED_PHASES = ("training", "assessment")  # those that count tables across parties, each with shares of its own


class CountsPairs(Protocol):
    """What a family by columns says of its tables."""

    names: list[str]
    pairs: list[Clique]

    @property
    def noise(self) -> list[CountNoise] | None: ...

    def counted_bins(self, ask: Ask) -> Bins: ...


def dealer_of(plan: Plan, pair: Pair) -> str:
    """Whoever holds no columns, else the first by name outside the pair; the aggregator where the plan says so."""
    if plan.linkage is not None and plan.linkage.dealer == AGGREGATOR:
        return AGGREGATOR
    outside = sorted((bool(party.columns), party.name) for party in plan.parties if party.name not in pair)
    return outside[0][1]


@dataclass(frozen=True)
class Geometry:
    """One exchange of shares."""

    plan: Plan
    bins: Bins
    names: list[str]  # of the counted columns
    places: int

    @classmethod
    def of(cls, plan: Plan, inquiry: Inquiry, ask: Ask, places: int) -> Geometry:
        """Of the tables that an ask is about; refuses one that the plan does not contain."""
        names, counted_bins = getattr(inquiry, "names", None), getattr(inquiry, "counted_bins", None)
        if names is None or counted_bins is None:
            raise ProtocolError("this ask is about no tables across parties")
        return cls(plan, counted_bins(ask), list(names), places)

    def columns(self, party: str) -> list[str]:
        """The counted columns of a party, in the order of its matrix."""
        held = set(self.plan.columns_of(party))
        return [name for name in self.names if name in held]

    def sizes(self, party: str) -> list[int]:
        """Bins of each of them."""
        return [self.bins.size(name) for name in self.columns(party)]

    def width(self, party: str) -> int:
        """Of a party's matrix: whether there is anybody, and all bins but the last of each column."""
        return 1 + sum(size - 1 for size in self.sizes(party))

    def widths(self, pair: Pair) -> tuple[int, int]:
        return self.width(pair[0]), self.width(pair[1])

    @property
    def widest(self) -> int:
        return max(self.width(party) for party in self.plan.holders)

    @property
    def pairs(self) -> list[Pair]:
        """Every two parties with counted columns."""
        return list(combinations([party for party in self.plan.holders if self.columns(party)], 2))

    @property
    def encrypted(self) -> bool:
        """Nobody deals."""
        return self.plan.linkage is not None and self.plan.linkage.dealer == NOBODY_DEALS

    def dealt_by(self, dealer: str) -> list[tuple[str, str, tuple[int, int]]]:
        """The pairs that a dealer deals for, and how large their matrices are."""
        if self.encrypted:
            return []
        return [(*pair, self.widths(pair)) for pair in self.pairs if dealer_of(self.plan, pair) == dealer]

    def block(self, party: str, column: str) -> slice:
        """Where a column's bins but the last are in its party's matrix."""
        before = self.sizes(party)[: self.columns(party).index(column)]
        start = 1 + sum(size - 1 for size in before)
        return slice(start, start + self.bins.size(column) - 1)

    def digest(self) -> str:
        """What the masks of this exchange are for; for other bins or places there are none."""
        state = hashlib.sha256(f"{self.places}|{self.names!r}|".encode())
        state.update(self.bins.of_cell.astype("<i8").tobytes())
        return state.hexdigest()
