"""Tables across two parties in shares: exact together, uniform alone, and what follows when somebody errs."""

from __future__ import annotations

import os
from itertools import product as product_of

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto import cross_tables
from crypto.cross_tables import (
    ABSENT,
    Matrix,
    Places,
    chunks_of,
    dealt,
    first_offset,
    first_share,
    masked_rows,
    places_of_ones,
    product,
    second_share,
    with_last_bins,
)
from crypto.dealing import correction, deals, seeds_letter
from crypto.errors import CryptoError

Shape = tuple[int, list[int], list[int]]  # rows, sizes of the columns of either party


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    sizes = st.lists(st.integers(1, 5), min_size=1, max_size=3)
    return draw(st.integers(0, 40)), draw(sizes), draw(sizes)


def places(rows: int, sizes: list[int], rng: np.random.Generator) -> Places:
    starts = np.cumsum([0, *sizes])[:-1]
    found = np.stack([start + rng.integers(0, size, rows) for start, size in zip(starts, sizes, strict=True)], axis=1)
    found[rng.random(rows) < 0.2] = ABSENT
    return found.astype(np.int64)


def dense(ones: Places, width: int) -> np.ndarray:
    found = np.zeros((len(ones), width), dtype=np.int64)
    rows, columns = np.nonzero(ones != ABSENT)
    found[rows, ones[rows, columns]] = 1
    return found


def shares(
    first: Places, second: Places, widths: tuple[int, int], seeds: tuple[bytes, bytes], wrong: Matrix | None = None
) -> tuple[Matrix, Matrix]:
    """The protocol, chunk by chunk; `wrong` is added to what the dealer says."""
    chunks = chunks_of(len(first), max(widths))
    one, two = first_offset(seeds[0], widths).copy(), dealt(seeds, widths, chunks)
    if wrong is not None:
        two += wrong
    for number, part in enumerate(chunks):
        one += first_share(first[part], widths[0], masked_rows(second[part], widths[1], seeds[1], number))
        two += second_share(masked_rows(first[part], widths[0], seeds[0], number), widths[1], seeds[1], number)
    return one, two


@given(shapes(), st.integers(0, 10**6), st.sampled_from([1 << 23, 64]))
@settings(max_examples=40)
def test_shares_add_up_to_the_tables(shape: Shape, seed: int, letter_bytes: int) -> None:
    rows, left, right = shape
    rng, widths = np.random.default_rng(seed), (sum(left), sum(right))
    first, second = places(rows, left, rng), places(rows, right, rng)
    before, cross_tables.LETTER_BYTES = cross_tables.LETTER_BYTES, letter_bytes
    try:
        one, two = shares(first, second, widths, (rng.bytes(32), rng.bytes(32)))
    finally:
        cross_tables.LETTER_BYTES = before
    np.testing.assert_array_equal((one + two).astype(np.int64), dense(first, widths[0]).T @ dense(second, widths[1]))


@given(shapes(), st.integers(0, 10**6))
@settings(max_examples=40)
def test_the_last_bin_of_every_column_follows_from_the_others(shape: Shape, seed: int) -> None:
    """To the unit and share by share, whoever is missing at either party."""
    rows, left, right = shape
    rng = np.random.default_rng(seed)
    bins = [np.stack([rng.integers(0, size, rows) for size in sizes], axis=1) for sizes in (left, right)]
    for one in bins:
        one[rng.random(rows) < 0.2] = ABSENT
    widths = 1 + sum(left) - len(left), 1 + sum(right) - len(right)
    first, second = (places_of_ones(one, sizes) for one, sizes in zip(bins, (left, right), strict=True))
    found = shares(first, second, widths, (rng.bytes(32), rng.bytes(32)))
    starts = [1 + np.cumsum([0, *(size - 1 for size in sizes)]) for sizes in (left, right)]
    for a, b in product_of(range(len(left)), range(len(right))):
        blocks = slice(*starts[0][a : a + 2]), slice(*starts[1][b : b + 2])
        table = sum((with_last_bins(share, *blocks) for share in found), np.uint32(0))
        counted = np.zeros((left[a], right[b]), dtype=np.int64)
        there = (bins[0][:, a] != ABSENT) & (bins[1][:, b] != ABSENT)
        np.add.at(counted, (bins[0][there, a], bins[1][there, b]), 1)
        np.testing.assert_array_equal(table.astype(np.int64), counted)


@given(st.integers(0, 60), st.integers(1, 5), st.integers(1, 5), st.integers(0, 10**6))
@settings(max_examples=30)
def test_products_wrap_as_integers_do(rows: int, left: int, right: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(0, 2**32, (rows, width), dtype=np.uint64) for width in (left, right))
    exact = (a.astype(object).T @ b.astype(object)) % 2**32 if rows else np.zeros((left, right), dtype=object)
    np.testing.assert_array_equal(product(a.astype(np.uint32), b.astype(np.uint32)).astype(object), exact)


def test_products_are_exact_at_the_largest_chunk() -> None:
    rows = 1 << 20
    ones = np.full((rows, 1), 2**32 - 1, dtype=np.uint32)
    assert product(ones, ones)[0, 0] == rows % 2**32  # (-1)² each


def test_each_share_and_each_letter_is_uniform_alone() -> None:
    """All bits of what one side sees, over many runs on the same rows, are fair coins: 5 standard deviations."""
    rng, runs = np.random.default_rng(1), 400
    first, second = places(30, [3], rng), places(30, [2], rng)
    seen: dict[str, list[Matrix]] = {"share 1": [], "share 2": [], "letter": [], "deal": []}
    for _ in range(runs):
        seeds = os.urandom(32), os.urandom(32)
        one, two = shares(first, second, (3, 2), seeds)
        seen["share 1"].append(one)
        seen["share 2"].append(two)
        seen["letter"].append(masked_rows(first, 3, seeds[0], 0))
        seen["deal"].append(dealt(seeds, (3, 2), chunks_of(30, 3)))
    for name, found in seen.items():
        values = np.stack(found)
        for bit in (0, 15, 16, 31):
            ones = (values >> np.uint32(bit) & np.uint32(1)).mean(axis=0)
            assert np.abs(ones - 0.5).max() < 5 * 0.5 / np.sqrt(runs), (name, bit)


def test_a_second_matrix_under_one_seed_would_show_where_they_differ() -> None:
    """Why a seed masks one matrix only: the party's journal refuses a second one (tests/linkage)."""
    rng, seed = np.random.default_rng(2), os.urandom(32)
    one = places(20, [4], rng)
    other = one.copy()
    other[7] = (one[7] + 1) % 4 if one[7] != ABSENT else 0
    difference = masked_rows(other, 4, seed, 0) - masked_rows(one, 4, seed, 0)
    assert list(np.flatnonzero(difference.any(axis=1))) == [7]


def test_chunks_have_masks_of_their_own() -> None:
    nobody = np.full((5, 1), ABSENT, dtype=np.int64)
    seed = os.urandom(32)
    assert not np.array_equal(masked_rows(nobody, 2, seed, 0), masked_rows(nobody, 2, seed, 1))


def test_a_wrong_deal_shifts_the_tables_by_what_the_dealer_chose_whatever_the_rows_are() -> None:
    rng = np.random.default_rng(3)
    wrong = rng.integers(0, 2**32, (3, 2), dtype=np.uint64).astype(np.uint32)
    for _ in range(3):
        first, second = places(25, [3], rng), places(25, [2], rng)
        one, two = shares(first, second, (3, 2), (os.urandom(32), os.urandom(32)), wrong)
        right = (dense(first, 3).T @ dense(second, 2)).astype(np.uint32)
        np.testing.assert_array_equal(one + two - right, wrong)


def test_the_dealer_and_one_party_together_read_the_other() -> None:
    """What no plan may promise: stated in the certificate, and the reason for `colluders: 1` at most."""
    rng, seeds = np.random.default_rng(4), (os.urandom(32), os.urandom(32))
    first = places(25, [3], rng)
    letter = masked_rows(first, 3, seeds[0], 0)  # which the second party has
    nobody = np.full((25, 1), ABSENT, dtype=np.int64)
    np.testing.assert_array_equal(letter - masked_rows(nobody, 3, seeds[0], 0), dense(first, 3))


def test_dealers_letters_come_back_as_they_were() -> None:
    seeds = {"a": os.urandom(32), "b": os.urandom(32)}
    letters = {"a": seeds_letter([("b", seeds["a"])]), "b": seeds_letter([("a", seeds["b"])])}
    chunks = chunks_of(9, 3)
    found = deals([("a", "b", (3, 2))], chunks, letters)
    expected = dealt((seeds["a"], seeds["b"]), (3, 2), chunks)
    assert list(found) == ["b"]
    assert correction(found["b"], "a") == expected.tobytes()
    for bent in ({"a": letters["a"]}, letters | {"b": letters["b"][:-1]}, letters | {"b": b""}):
        with pytest.raises(CryptoError):
            deals([("a", "b", (3, 2))], chunks, bent)
