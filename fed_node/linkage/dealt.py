"""Shares with a dealer's help: rows under masks to the other party, the masks' seeds to the dealer.

The arithmetic is that of crypto/cross_tables.py. What must never happen twice: a seed masks one matrix. It is on the
volume before anything leaves under it (exchange.py).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from crypto.cross_tables import (
    SEED_BYTES,
    Matrix,
    chunks_of,
    first_offset,
    first_share,
    masked_rows,
    second_share,
)
from crypto.dealing import correction, deals, seeds_letter
from crypto.errors import Malformed
from fed_node.linkage.exchange import Exchange, Letters
from synth.encoding.contingency import Ints
from synth.interface import Arrays
from synth.linkage.pairs import Geometry, Pair, dealer_of


class DealtExchange(Exchange):
    def seeds(self, geometry: Geometry, ones: Ints) -> Letters:
        """To every dealer: the seeds of this party's masks, one for each other party."""
        self._begin(geometry, ones)
        by_dealer: dict[str, list[tuple[str, bytes]]] = {}
        for pair in self._pairs(geometry):
            other = self._other(pair)
            by_dealer.setdefault(dealer_of(self.plan, pair), []).append((other, self._seed(other)))
        return {dealer: seeds_letter(seeds) for dealer, seeds in by_dealer.items()}

    def deal(self, geometry: Geometry, letters: Mapping[str, bytes]) -> Letters:
        """As a dealer: to the second of every pair, its correction."""
        return deals(geometry.dealt_by(self.party), chunks_of(geometry.places, geometry.widest), letters)

    def take_deals(self, geometry: Geometry, letters: Mapping[str, bytes]) -> None:
        """The first deal counts; another one is not looked at."""
        for pair in self._pairs(geometry):
            if self.party != pair[1] or self._name("dealt", pair) in self.page.arrays:
                continue
            content = correction(letters.get(dealer_of(self.plan, pair), b""), pair[0])
            self.page.note({}, {self._name("dealt", pair): _matrix(content, *geometry.widths(pair))})

    def rows(self, geometry: Geometry, ones: Ints, chunk: int) -> Letters:
        """To every other party: a chunk of this one's rows, masked."""
        self._begin(geometry, ones)
        chunks = chunks_of(geometry.places, geometry.widest)
        if chunk >= len(chunks):
            return {}
        width, found = geometry.width(self.party), {}
        for pair in self._pairs(geometry):
            seed = self._seed(self._other(pair))
            found[self._other(pair)] = masked_rows(ones[chunks[chunk]], width, seed, chunk).tobytes()
        return found

    def _rounds(self, geometry: Geometry, pair: Pair) -> int:
        return len(chunks_of(geometry.places, geometry.widest))

    def _taken(self, geometry: Geometry, pair: Pair, ones: Ints, letter: bytes, chunk: int) -> Arrays:
        part, width = chunks_of(geometry.places, geometry.widest)[chunk], geometry.width(self.party)
        theirs = _matrix(letter, part.stop - part.start, geometry.width(self._other(pair)))
        if self.party == pair[0]:
            added = first_share(ones[part], width, theirs)
        else:
            added = second_share(theirs, width, self._seed(pair[0]), chunk)
        return {self._name("share", pair): self._kept("share", pair).astype(np.uint32) + added}

    def _share(self, geometry: Geometry, pair: Pair) -> Matrix:
        share: Matrix = self._kept("share", pair).astype(np.uint32)
        if self.party == pair[0]:
            return share + first_offset(self._seed(pair[1]), geometry.widths(pair))
        rest: Matrix = self._kept("dealt", pair).astype(np.uint32)
        return share + rest

    def _secrets(self, geometry: Geometry) -> tuple[dict[str, Any], Arrays]:
        pairs = self._pairs(geometry)
        seeds = {self._other(pair): os.urandom(SEED_BYTES).hex() for pair in pairs}
        return {"seeds": seeds}, {
            self._name("share", pair): np.zeros(geometry.widths(pair), np.uint32) for pair in pairs
        }

    def _seed(self, other: str) -> bytes:
        return bytes.fromhex(self.page.values["seeds"][other])


def _matrix(content: bytes, rows: int, width: int) -> Matrix:
    if len(content) != 4 * rows * width:
        raise Malformed("a letter does not hold a matrix of the size that the plan and its bins say")
    return np.frombuffer(content, dtype="<u4").reshape(rows, width)
