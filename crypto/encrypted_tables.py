"""Tables across two parties without a dealer: one encrypts its rows, the other adds up those that it chooses, masked.

The first party's one-hot rows lie one after the other in the slots of its ciphertexts. For each of its own bins, the
second multiplies them by ones at the rows in that bin, adds up, puts a mask into every slot and sends the totals back:
as many ciphertexts as it has bins. A slot's mask is uniform below the plaintext prime less the largest count, so that
the sum never wraps around it: a count is hidden up to 2^-50 of it, and a sum of integers is one modulo 2^32, too:

    first:  Σ slots of a bin  modulo 2^32        second:  -Σ masks  modulo 2^32        together: the count

What the first party sees depends on the second's rows by `distance` at most, and on how hard ring-LWE is.
From here on these are shares like those of crypto/cross_tables.py. Letters go in rounds: rows up, totals down.
"""

import os
from collections.abc import Iterable, Sequence
from math import ceil

import numpy as np
from numpy.typing import NDArray

from crypto.bfv import CIPHERTEXT_BYTES, PLAIN, SLOTS, Numbers, OtherKey, OwnerKey, flood_distance
from crypto.cross_tables import ABSENT, LETTER_BYTES, Matrix, Places
from crypto.errors import Malformed, WrongShape
from crypto.framing import pack, unpack_all

PER_LETTER = max(1, LETTER_BYTES // CIPHERTEXT_BYTES)


def rows_up(rows: int, width: int) -> list[slice]:
    """The rows of every ciphertext of the first party; one without rows where there are none."""
    if width > SLOTS:
        raise WrongShape(f"without a dealer a party's columns have at most {SLOTS} bins together; merge some")
    step = SLOTS // width
    return [slice(start, min(start + step, rows)) for start in range(0, max(rows, 1), step)]


def letters_up(rows: int, widths: tuple[int, int]) -> int:
    return ceil(len(rows_up(rows, widths[0])) / PER_LETTER)


def letters_down(widths: tuple[int, int]) -> int:
    return ceil(widths[1] / PER_LETTER)


def rounds_of(rows: int, pairs: Iterable[tuple[int, int]]) -> int:
    """Rounds of letters until all pairs of parties with these widths have their shares."""
    return max((letters_up(rows, widths) + letters_down(widths) for widths in pairs), default=0)


def distance(rows: int, widths: tuple[int, int], columns: tuple[int, int]) -> float:
    """Total variation between what the first party sees and what depends on no row of the second, at most. Every count
    moves its mask by itself over the prime, and all counts add up to one for each row and pair of ones in it: of either
    party one a column, and the one that says that there is somebody."""
    ciphertexts = len(rows_up(rows, widths[0]))
    counted = rows * (columns[0] + 1) * (columns[1] + 1)
    return flood_distance(ciphertexts, widths[1]) + counted / (PLAIN - ciphertexts)


def encrypted_rows(key: OwnerKey, places: Places, width: int, letter: int) -> bytes:
    """A letter of the first party."""
    parts = rows_up(len(places), width)[letter * PER_LETTER : (letter + 1) * PER_LETTER]
    return pack("encrypted rows", *(key.encrypt(_dense(places[part], width).ravel()) for part in parts))


def added(
    key: OtherKey, totals: Sequence[bytes], letter: bytes, places: Places, widths: tuple[int, int], number: int
) -> list[bytes]:
    """The second party's totals, one for each of its bins, with one more letter of rows in them."""
    parts = rows_up(len(places), widths[0])[number * PER_LETTER : (number + 1) * PER_LETTER]
    ciphertexts = unpack_all("encrypted rows", letter)
    if len(ciphertexts) != len(parts):
        raise Malformed("a letter does not hold as many encrypted rows as the plan and its bins say")
    chosen = [_dense(places[part], widths[1]) for part in parts]
    return [
        key.added(
            total,
            ((each, np.repeat(ones[:, bin], widths[0])) for each, ones in zip(ciphertexts, chosen, strict=True)),
        )
        for bin, total in enumerate(totals)
    ]


def hidden(key: OtherKey, totals: Sequence[bytes], rows: int, widths: tuple[int, int]) -> tuple[list[bytes], Matrix]:
    """What goes back to the first party, and the second party's share: written down together, once."""
    most = len(rows_up(rows, widths[0]))  # ciphertexts in a total, so the largest count in a slot
    sent, share = [], np.empty(widths, dtype=np.uint32)
    for bin, total in enumerate(totals):
        mask = _below(PLAIN - most)
        sent.append(key.hidden(total, mask))
        share[:, bin] = -_folded(mask, widths[0])
    return sent, share


def totals_letter(totals: Sequence[bytes], number: int) -> bytes:
    return pack("masked totals", *totals[number * PER_LETTER : (number + 1) * PER_LETTER])


def opened(key: OwnerKey, letter: bytes, widths: tuple[int, int], number: int) -> tuple[slice, Matrix]:
    """Which of the second party's bins a letter is about, and the first party's share of their tables."""
    bins = slice(number * PER_LETTER, min((number + 1) * PER_LETTER, widths[1]))
    totals = unpack_all("masked totals", letter)
    if len(totals) != bins.stop - bins.start:
        raise Malformed("a letter does not hold as many totals as the plan and its bins say")
    return bins, np.stack([_folded(key.open(total), widths[0]) for total in totals], axis=1)


def _dense(places: Places, width: int) -> Numbers:
    found = np.zeros((len(places), width), dtype=np.int64)
    rows, columns = np.nonzero(places != ABSENT)
    found[rows, places[rows, columns]] = 1
    return found


def _folded(slots: NDArray[np.uint64], width: int) -> Matrix:
    """Sums over the rows in the slots, modulo 2^32."""
    rows = slots[: SLOTS // width * width].astype(np.uint32).reshape(-1, width)
    return np.asarray(rows.sum(axis=0, dtype=np.uint32))


def _below(limit: int) -> NDArray[np.uint64]:
    """Uniform numbers below the limit, one for every slot."""
    bits, found = np.uint64(64 - limit.bit_length()), np.empty(0, dtype=np.uint64)
    while len(found) < SLOTS:
        drawn = np.frombuffer(os.urandom(8 * SLOTS), dtype="<u8") >> bits
        found = np.concatenate([found, drawn[drawn < limit]])
    return found[:SLOTS]
