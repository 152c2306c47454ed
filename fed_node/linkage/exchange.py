"""Shares of all tables across this party and each other, made once a phase and kept: later rounds add fresh noise only.

The arithmetic is that of crypto/cross_tables.py. Here is what must never happen twice: a seed masks one matrix. It is
on the volume, with digests of the bins and of the rows that it masks, before anything leaves under it; asked with other
bins, or after the rows changed, the party refuses. A chunk that comes again is the same chunk, and is added once.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping

import numpy as np

from crypto.cross_tables import (
    SEED_BYTES,
    Matrix,
    chunks_of,
    first_offset,
    first_share,
    masked_rows,
    second_share,
    with_last_bins,
)
from crypto.dealing import correction, deals, seeds_letter
from crypto.errors import Malformed
from fed_node.errors import SecondVector, SharesMissing
from fed_node.linkage.state import Page
from synth.encoding.contingency import Ints
from synth.errors import ProtocolError
from synth.linkage.pairs import Geometry, Pair, dealer_of
from synth.plan import Plan

Letters = dict[str, bytes]  # by recipient, or by sender


class Exchange:
    """One party's part."""

    def __init__(self, plan: Plan, party: str, page: Page) -> None:
        self.plan, self.party, self.page = plan, party, page

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
        for pair in self._pairs(geometry):
            if self.party != pair[1] or self._name("dealt", pair) in self.page.arrays:
                continue
            content = correction(letters.get(dealer_of(self.plan, pair), b""), pair[0])
            self.page.note({}, {self._name("dealt", pair): _matrix(content, *geometry.widths(pair))})

    def rows(self, geometry: Geometry, ones: Ints, chunk: int) -> Letters:
        """To every other party: a chunk of this one's rows, masked; nothing after the last."""
        self._begin(geometry, ones)
        chunks = chunks_of(geometry.places, geometry.widest)
        if chunk >= len(chunks):
            return {}
        width, found = geometry.width(self.party), {}
        for pair in self._pairs(geometry):
            seed = self._seed(self._other(pair))
            found[self._other(pair)] = masked_rows(ones[chunks[chunk]], width, seed, chunk).tobytes()
        return found

    def take_rows(self, geometry: Geometry, ones: Ints, chunk: int, letters: Mapping[str, bytes]) -> None:
        """Everybody's chunk, added to the shares; one that was added before is not added again."""
        self._begin(geometry, ones)
        part = chunks_of(geometry.places, geometry.widest)[chunk]
        received, shares = dict(self.page.values["received"]), {}
        for pair in self._pairs(geometry):
            other = self._other(pair)
            if received[other] > chunk:
                continue
            if received[other] < chunk:
                raise ProtocolError("a chunk of masked rows came before the one that it follows")
            theirs = _matrix(letters.get(other, b""), part.stop - part.start, geometry.width(other))
            added = self._added(geometry, pair, ones[part], theirs, chunk)
            shares[self._name("share", pair)] = self.page.arrays[self._name("share", pair)].astype(np.uint32) + added
            received[other] = chunk + 1
        self.page.note({"received": received}, dict(shares))

    def is_for(self, geometry: Geometry) -> bool:
        """Whether these shares are, or are to be, of tables with these bins and places."""
        return bool(self.page.values.get("digest") == geometry.digest())

    def table(self, columns: list[str], geometry: Geometry) -> Ints:
        """This party's share of a table across it and another."""
        owners = [str(self.plan.owner([column])) for column in columns]
        pair: Pair = (min(owners), max(owners))
        share = self._complete(geometry, pair)
        first, second = columns if owners[0] == pair[0] else columns[::-1]
        found = with_last_bins(share, geometry.block(pair[0], first), geometry.block(pair[1], second))
        block = found.astype(np.int64)
        return block if owners[0] == pair[0] else block.T

    def _complete(self, geometry: Geometry, pair: Pair) -> Matrix:
        values, arrays, other = self.page.values, self.page.arrays, self._other(pair)
        complete = values["received"][other] == len(chunks_of(geometry.places, geometry.widest))
        first = self.party == pair[0]
        if not complete or not (first or self._name("dealt", pair) in arrays):
            raise SharesMissing(f"not all letters of '{other}' came; the aggregator must carry them first")
        rest = first_offset(self._seed(other), geometry.widths(pair)) if first else arrays[self._name("dealt", pair)]
        return arrays[self._name("share", pair)].astype(np.uint32) + rest.astype(np.uint32)

    def _added(self, geometry: Geometry, pair: Pair, ones: Ints, theirs: Matrix, chunk: int) -> Matrix:
        width = geometry.width(self.party)
        if self.party == pair[0]:
            return first_share(ones, width, theirs)
        return second_share(theirs, width, self._seed(pair[0]), chunk)

    def _begin(self, geometry: Geometry, ones: Ints) -> None:
        """Seeds for this very matrix, written down before they are used; for another one there are none."""
        masked = hashlib.sha256(np.ascontiguousarray(ones, dtype="<i8").tobytes()).hexdigest()
        now = {"digest": geometry.digest(), "masked": masked}
        if "digest" in self.page.values:
            if {name: self.page.values[name] for name in now} != now:
                raise SecondVector(
                    "shares were made for other bins, places or rows; one mask must not cover both. Start a new run."
                )
            return
        others = [self._other(pair) for pair in self._pairs(geometry)]
        seeds = {other: os.urandom(SEED_BYTES).hex() for other in others}
        empty = {
            self._name("share", pair): np.zeros(geometry.widths(pair), np.uint32) for pair in self._pairs(geometry)
        }
        self.page.note(now | {"seeds": seeds, "received": dict.fromkeys(others, 0)}, dict(empty))

    def _seed(self, other: str) -> bytes:
        return bytes.fromhex(self.page.values["seeds"][other])

    def _pairs(self, geometry: Geometry) -> list[Pair]:
        return [pair for pair in geometry.pairs if self.party in pair]

    def _other(self, pair: Pair) -> str:
        return pair[1] if self.party == pair[0] else pair[0]

    def _name(self, kind: str, pair: Pair) -> str:
        return f"{kind}/{self._other(pair)}"


def _matrix(content: bytes, rows: int, width: int) -> Matrix:
    if len(content) != 4 * rows * width:
        raise Malformed("a letter does not hold a matrix of the size that the plan and its bins say")
    return np.frombuffer(content, dtype="<u4").reshape(rows, width)
