"""Shares without a dealer: the first of two parties encrypts its rows, the second returns masked totals of them.

The arithmetic is that of crypto/encrypted_tables.py. The first party's key is made for this exchange and stays on its
volume; the second's masks are drawn once, when all rows have come, and are on its volume, with what is sent back,
before it is sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from crypto.bfv import OtherKey, OwnerKey
from crypto.cross_tables import Matrix
from crypto.encrypted_tables import (
    added,
    encrypted_rows,
    hidden,
    letters_down,
    letters_up,
    opened,
    totals_letter,
)
from crypto.framing import pack, unpack_all
from fed_node.linkage.exchange import Exchange, Letters
from synth.encoding.contingency import Ints
from synth.interface import Array, Arrays
from synth.linkage.pairs import Geometry, Pair

KEPT = "kept totals"


class EncryptedExchange(Exchange):
    def seeds(self, geometry: Geometry, ones: Ints) -> Letters:
        """To the second of every pair: the public half of this party's key."""
        self._begin(geometry, ones)
        return {pair[1]: self._owner(pair).public() for pair in self._pairs(geometry) if self.party == pair[0]}

    def deal(self, geometry: Geometry, letters: Mapping[str, bytes]) -> Letters:
        """Nobody deals; the others' keys are kept. The first one counts."""
        for pair in self._pairs(geometry):
            if self.party == pair[1] and self._name("key", pair) not in self.page.arrays:
                key = letters.get(pair[0], b"")
                OtherKey(key)  # refuses another setting
                self.page.note({}, {self._name("key", pair): _as_array(key)})
        return {}

    def take_deals(self, geometry: Geometry, letters: Mapping[str, bytes]) -> None:
        """There are none."""

    def rows(self, geometry: Geometry, ones: Ints, chunk: int) -> Letters:
        """From the first of every pair its rows, encrypted; then, from the second, masked totals."""
        self._begin(geometry, ones)
        found = {}
        for pair in self._pairs(geometry):
            up, down = self._letters(geometry, pair)
            if self.party == pair[0] and chunk < up:
                found[pair[1]] = encrypted_rows(self._owner(pair), ones, geometry.width(self.party), chunk)
            if self.party == pair[1] and up <= chunk < up + down:
                found[pair[0]] = totals_letter(self._blobs("sent", pair), chunk - up)
        return found

    def _rounds(self, geometry: Geometry, pair: Pair) -> int:
        return sum(self._letters(geometry, pair))

    def _taken(self, geometry: Geometry, pair: Pair, ones: Ints, letter: bytes, chunk: int) -> Arrays:
        up, widths = self._letters(geometry, pair)[0], geometry.widths(pair)
        if self.party == pair[1] and chunk < up:
            key = OtherKey(self._kept("key", pair).tobytes())
            totals = added(key, self._blobs("totals", pair), letter, ones, widths, chunk)
            if chunk < up - 1:
                return {self._name("totals", pair): _packed(totals)}
            sent, share = hidden(key, totals, geometry.places, widths)
            return {
                self._name("totals", pair): _packed([]),
                self._name("sent", pair): _packed(sent),
                self._name("share", pair): share,
            }
        if self.party == pair[0] and chunk >= up:
            bins, columns = opened(self._owner(pair), letter, widths, chunk - up)
            share = self._kept("share", pair).astype(np.uint32)
            share[:, bins] = columns
            return {self._name("share", pair): share}
        return {}  # the other one writes in this round

    def _share(self, geometry: Geometry, pair: Pair) -> Matrix:
        share: Matrix = self._kept("share", pair).astype(np.uint32)
        return share

    def _secrets(self, geometry: Geometry) -> tuple[dict[str, Any], Arrays]:
        arrays: Arrays = {}
        for pair in self._pairs(geometry):
            widths = geometry.widths(pair)
            if self.party == pair[0]:
                arrays[self._name("owned", pair)] = _as_array(OwnerKey.make())
                arrays[self._name("share", pair)] = np.zeros(widths, np.uint32)
            else:
                arrays[self._name("totals", pair)] = _packed([b""] * widths[1])
        return {}, arrays

    def _letters(self, geometry: Geometry, pair: Pair) -> tuple[int, int]:
        widths = geometry.widths(pair)
        return letters_up(geometry.places, widths), letters_down(widths)

    def _owner(self, pair: Pair) -> OwnerKey:
        return OwnerKey(self._kept("owned", pair).tobytes())

    def _blobs(self, kind: str, pair: Pair) -> list[bytes]:
        return unpack_all(KEPT, self._kept(kind, pair).tobytes())


def _packed(blobs: Sequence[bytes]) -> Array:
    return _as_array(pack(KEPT, *blobs))


def _as_array(content: bytes) -> Array:
    return np.frombuffer(content, dtype=np.uint8)
