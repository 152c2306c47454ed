"""Shares of all tables across this party and each other, made once a phase and kept: later rounds add fresh noise only.

With a dealer they are made by `dealt.py`, without by `encrypted.py`. What holds for both is here: secrets are for one
matrix. Digests of the bins and of the rows are on the volume before anything leaves; asked with other bins, or
after the rows changed, the party refuses. A letter that comes again is the same letter, and is taken in once.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from crypto.cross_tables import Matrix, with_last_bins
from fed_node.errors import SecondVector, SharesMissing
from fed_node.linkage.state import Page
from synth.encoding.contingency import Ints
from synth.errors import ProtocolError
from synth.interface import Arrays
from synth.linkage.pairs import Geometry, Pair
from synth.plan import Plan

Letters = dict[str, bytes]  # by recipient, or by sender


class Exchange(ABC):
    """One party's part: letters by step, then shares."""

    def __init__(self, plan: Plan, party: str, page: Page) -> None:
        self.plan, self.party, self.page = plan, party, page

    @abstractmethod
    def seeds(self, geometry: Geometry, ones: Ints) -> Letters:
        """What must be known before rows are sent: to dealers, or to the other party."""

    @abstractmethod
    def deal(self, geometry: Geometry, letters: Mapping[str, bytes]) -> Letters:
        """Take in what the step before wrote; as a dealer, write to the second of every pair."""

    @abstractmethod
    def take_deals(self, geometry: Geometry, letters: Mapping[str, bytes]) -> None: ...

    @abstractmethod
    def rows(self, geometry: Geometry, ones: Ints, chunk: int) -> Letters:
        """The letters of one round; nothing after the last."""

    def take_rows(self, geometry: Geometry, ones: Ints, chunk: int, letters: Mapping[str, bytes]) -> None:
        """Everybody's letter of one round; one that was taken in before is not taken in again."""
        self._begin(geometry, ones)
        received, arrays = dict(self.page.values["received"]), dict[str, Any]()
        for pair in self._pairs(geometry):
            other = self._other(pair)
            if received[other] > chunk or chunk >= self._rounds(geometry, pair):
                continue
            if received[other] < chunk:
                raise ProtocolError("a letter came before the one that it follows")
            arrays |= self._taken(geometry, pair, ones, letters.get(other, b""), chunk)
            received[other] = chunk + 1
        self.page.note({"received": received}, arrays)

    def is_for(self, geometry: Geometry) -> bool:
        """Whether these shares are, or are to be, of tables with these bins and places."""
        return bool(self.page.values.get("digest") == geometry.digest())

    def table(self, columns: list[str], geometry: Geometry) -> Ints:
        """This party's share of a table across it and another."""
        owners = [str(self.plan.owner([column])) for column in columns]
        pair: Pair = (min(owners), max(owners))
        if self.page.values["received"][self._other(pair)] != self._rounds(geometry, pair):
            raise SharesMissing(f"not all letters of '{self._other(pair)}' came; the aggregator must carry them first")
        first, second = columns if owners[0] == pair[0] else columns[::-1]
        share = self._share(geometry, pair)
        found = with_last_bins(share, geometry.block(pair[0], first), geometry.block(pair[1], second))
        block = found.astype(np.int64)
        return block if owners[0] == pair[0] else block.T

    @abstractmethod
    def _rounds(self, geometry: Geometry, pair: Pair) -> int:
        """Rounds of letters that the pair needs."""

    @abstractmethod
    def _taken(self, geometry: Geometry, pair: Pair, ones: Ints, letter: bytes, chunk: int) -> Arrays:
        """What to write down of the other's letter of one round."""

    @abstractmethod
    def _share(self, geometry: Geometry, pair: Pair) -> Matrix:
        """This party's share of all tables of the pair, every letter having come."""

    @abstractmethod
    def _secrets(self, geometry: Geometry) -> tuple[dict[str, Any], Arrays]:
        """Made once, for this matrix alone."""

    def _begin(self, geometry: Geometry, ones: Ints) -> None:
        """Secrets for this very matrix, written down before they are used; for another one there are none."""
        masked = hashlib.sha256(np.ascontiguousarray(ones, dtype="<i8").tobytes()).hexdigest()
        now = {"digest": geometry.digest(), "masked": masked}
        if "digest" in self.page.values:
            if {name: self.page.values[name] for name in now} != now:
                raise SecondVector(
                    "shares were made for other bins, places or rows; one mask must not cover both. Start a new run."
                )
            return
        values, arrays = self._secrets(geometry)
        others = [self._other(pair) for pair in self._pairs(geometry)]
        self.page.note(now | values | {"received": dict.fromkeys(others, 0)}, arrays)

    def _pairs(self, geometry: Geometry) -> list[Pair]:
        return [pair for pair in geometry.pairs if self.party in pair]

    def _other(self, pair: Pair) -> str:
        return pair[1] if self.party == pair[0] else pair[0]

    def _name(self, kind: str, pair: Pair) -> str:
        return f"{kind}/{self._other(pair)}"

    def _kept(self, kind: str, pair: Pair) -> Any:
        if (found := self.page.arrays.get(self._name(kind, pair))) is None:
            raise SharesMissing(f"a letter before this one did not come ({kind}); the aggregator must carry it first")
        return found
