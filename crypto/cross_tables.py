"""Tables across two parties, in secret shares: pure functions on one-hot rows, seeds and matrices modulo 2^32.

Party 1 holds a matrix A₁ (a row a person, a one in the column of each of its bins), party 2 holds A₂ in the same order
of people; A₁ᵀA₂ is every table of a column here and a column there at once. Both expand a seed of their own to R₁ and
R₂. A dealer, who sees neither matrix, gets the seeds and gives party 2 the correction

    r₂ = R₁ᵀR₂ - r₁            (r₁ is expanded from party 1's seed)

and the parties exchange A₁ + R₁ and A₂ + R₂, which are uniform to whoever has not the seed. Then

    c₁ = A₁ᵀ(A₂ + R₂) + r₁     c₂ = r₂ - (A₁ + R₁)ᵀR₂     c₁ + c₂ = A₁ᵀA₂   (modulo 2^32)

Of every column the last bin is left out and follows from the others: the first column of a matrix says whether there is
anybody, and whoever is in no other bin is in the last. Each share alone is uniform. All products are over rows, so rows
go in chunks and the memory is bounded. A seed masks one matrix: with a second one under the same seed the other party
would see where the two differ. The dealer and one party together can read the other's rows; a dealer that deals wrongly
shifts the tables by an amount of its choosing, which depends on no row.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from crypto.derive import KeyStream, derive_key
from crypto.errors import WrongShape
from crypto.framing import number_bytes, pack

Matrix = NDArray[np.uint32]
Places = NDArray[np.int64]  # (rows, ones): where a row's ones are; ABSENT where one is left out or there is nobody
ABSENT = -1
SEED_BYTES = 32
LETTER_BYTES = 1 << 23  # of one chunk of masked rows, about
_HALF = np.uint32(16)
_LOW = np.uint32(0xFFFF)
_MOST_ROWS = 1 << 20  # of a chunk: products of 16-bit halves over so many rows are exact in float64


def places_of_ones(bins: Places, sizes: Sequence[int]) -> Places:
    """One-hot rows from the bin of every column (rows, columns), ABSENT in all of them where there is nobody.

    Whether there is anybody comes first; then all bins of each column but its last."""
    starts = 1 + np.cumsum([0, *(size - 1 for size in sizes)])[:-1]
    last = np.array([size - 1 for size in sizes], dtype=np.int64)
    somebody = np.where((bins != ABSENT).any(axis=1), 0, ABSENT)
    ones = np.where((bins == ABSENT) | (bins == last), ABSENT, bins + starts)
    return np.concatenate([somebody[:, None], ones], axis=1)


def with_last_bins(share: Matrix, first: slice, second: slice) -> Matrix:
    """The share of one table, with the last bin of both columns, from that of all; linear, so shares still add up."""
    inner, across, down = share[first, second], share[first, :1], share[:1, second]
    right = across - inner.sum(axis=1, keepdims=True, dtype=np.uint32)
    below = down - inner.sum(axis=0, keepdims=True, dtype=np.uint32)
    corner = share[:1, :1] - across.sum(dtype=np.uint32) - below.sum(dtype=np.uint32)
    return np.block([[inner, right], [below, corner]])


def chunk_rows(widest: int) -> int:
    """Rows of a chunk, from the wider of the two matrices."""
    return max(1, min(_MOST_ROWS, LETTER_BYTES // (4 * max(widest, 1))))


def chunks_of(rows: int, widest: int) -> list[slice]:
    """The rows in order, chunk by chunk; one empty chunk where there are none."""
    step = chunk_rows(widest)
    return [slice(start, min(start + step, rows)) for start in range(0, max(rows, 1), step)]


def masked_rows(places: Places, width: int, seed: bytes, chunk: int) -> Matrix:
    """A + R of one chunk: uniform to whoever has not the seed."""
    masked = _mask(seed, chunk, len(places), width)
    rows, columns = np.nonzero(places != ABSENT)
    masked[rows, places[rows, columns]] += np.uint32(1)
    return masked


def dealt(seeds: tuple[bytes, bytes], widths: tuple[int, int], chunks: list[slice]) -> Matrix:
    """The dealer's whole work: the correction r₂ for the second party."""
    first, second = seeds
    total = np.zeros(widths, dtype=np.uint32)
    for number, part in enumerate(chunks):
        rows = part.stop - part.start
        total += product(_mask(first, number, rows, widths[0]), _mask(second, number, rows, widths[1]))
    return total - _offset(first, widths)


def first_share(places: Places, width: int, theirs: Matrix) -> Matrix:
    """What a chunk adds to c₁: A₁ᵀ(A₂ + R₂), by adding up rows."""
    _require_rows(places, theirs)
    rows, columns = np.nonzero(places != ABSENT)
    ones = np.ones(len(rows), dtype=np.uint32)
    sparse = csr_array((ones, (places[rows, columns], rows)), shape=(width, len(places)))
    found: Any = sparse @ theirs
    return np.asarray(found, dtype=np.uint32)


def second_share(theirs: Matrix, width: int, seed: bytes, chunk: int) -> Matrix:
    """What a chunk adds to c₂: -(A₁ + R₁)ᵀR₂."""
    return -product(theirs, _mask(seed, chunk, len(theirs), width))


def first_offset(seed: bytes, widths: tuple[int, int]) -> Matrix:
    """r₁, which the first party adds to its share once; the second adds what the dealer sent."""
    return _offset(seed, widths)


def product(left: Matrix, right: Matrix) -> Matrix:
    """leftᵀ right modulo 2^32, as exact products of 16-bit halves in float64: an integer product has no BLAS."""
    if left.ndim != 2 or right.ndim != 2 or len(left) != len(right) or len(left) > _MOST_ROWS:
        raise WrongShape("two masked matrices do not have the same, limited number of rows; nothing was multiplied")
    low_left, high_left = (left & _LOW).astype(np.float64), (left >> _HALF).astype(np.float64)
    low_right, high_right = (right & _LOW).astype(np.float64), (right >> _HALF).astype(np.float64)
    middle = _wrapped(low_left.T @ high_right) + _wrapped(high_left.T @ low_right)
    return _wrapped(low_left.T @ low_right) + (middle << _HALF)


def _wrapped(exact: NDArray[np.float64]) -> Matrix:
    return exact.astype(np.uint64).astype(np.uint32)


def _mask(seed: bytes, chunk: int, rows: int, width: int) -> Matrix:
    return _expanded(seed, pack("row mask", number_bytes(chunk)), (rows, width))


def _offset(seed: bytes, widths: tuple[int, int]) -> Matrix:
    return _expanded(seed, pack("share offset"), widths)


def _expanded(seed: bytes, purpose: bytes, shape: tuple[int, int]) -> Matrix:
    if len(seed) != SEED_BYTES:
        raise WrongShape(f"the seed of a mask has {SEED_BYTES} bytes; ask its sender to send it again")
    stream = KeyStream(4 * shape[0] * shape[1]).of(derive_key(seed, purpose + pack("shape", *map(number_bytes, shape))))
    return stream.view("<u4").reshape(shape)


def _require_rows(places: Places, theirs: Matrix) -> None:
    if theirs.ndim != 2 or len(theirs) != len(places) or theirs.dtype != np.uint32:
        raise WrongShape("a chunk of masked rows does not have as many rows as are aligned here; nothing was added")
