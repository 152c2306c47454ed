"""Tables across two parties without a dealer: exact together, uniform alone, and nothing in the noise."""

from __future__ import annotations

import numpy as np
import pytest

from crypto import bfv, encrypted_tables
from crypto.bfv import FLOOD_BITS, FRESH_NOISE, PLAIN, SLOTS, OtherKey, OwnerKey, flood_distance
from crypto.cross_tables import ABSENT, Matrix, Places
from crypto.encrypted_tables import (
    added,
    distance,
    encrypted_rows,
    hidden,
    letters_down,
    letters_up,
    opened,
    rounds_of,
    rows_up,
    totals_letter,
)
from crypto.errors import CryptoError, Malformed, WrongContext, WrongShape
from tests.crypto.test_cross_tables import dense, places

WIDTHS = (3000, 4)  # two rows a ciphertext


@pytest.fixture(scope="module")
def owner() -> OwnerKey:
    return OwnerKey(OwnerKey.make())


def shares(owner: OwnerKey, first: Places, second: Places, widths: tuple[int, int]) -> tuple[Matrix, Matrix]:
    other, totals = OtherKey(owner.public()), [b""] * widths[1]
    for number in range(letters_up(len(first), widths)):
        totals = added(other, totals, encrypted_rows(owner, first, widths[0], number), second, widths, number)
    sent, theirs = hidden(other, totals, len(first), widths)
    mine = np.zeros(widths, dtype=np.uint32)
    for number in range(letters_down(widths)):
        bins, mine_of = opened(owner, totals_letter(sent, number), widths, number)
        mine[:, bins] = mine_of
    return mine, theirs


@pytest.mark.parametrize(("rows", "sizes"), [(17, ([2990, 10], [2, 2])), (0, ([3], [2])), (40, ([5, 4], [3]))])
def test_shares_add_up_to_the_tables(
    rows: int, sizes: tuple[list[int], list[int]], owner: OwnerKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encrypted_tables, "PER_LETTER", 3)
    rng, widths = np.random.default_rng(rows), (sum(sizes[0]), sum(sizes[1]))
    first, second = places(rows, sizes[0], rng), places(rows, sizes[1], rng)
    mine, theirs = shares(owner, first, second, widths)
    np.testing.assert_array_equal(
        (mine + theirs).astype(np.int64), dense(first, widths[0]).T @ dense(second, widths[1])
    )
    assert rounds_of(rows, [widths, (1, 1)]) == letters_up(rows, widths) + letters_down(widths)


def test_each_share_is_uniform_alone(owner: OwnerKey) -> None:
    """On rows where all counts are 20: every byte of either share over some runs."""
    first = second = np.zeros((20, 1), dtype=np.int64)
    found = [shares(owner, first, second, (4, 3)) for _ in range(12)]
    for side in (0, 1):
        whole = np.stack([each[side] for each in found])
        assert len(np.unique(whole)) == whole.size  # 144 numbers below 2^32
        assert abs((whole >> np.uint32(31)).mean() - 0.5) < 5 * 0.5 / np.sqrt(whole.size)


def test_a_slot_never_wraps_around_the_plaintext_prime(owner: OwnerKey, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the largest mask that is ever drawn."""
    monkeypatch.setattr(encrypted_tables, "_below", lambda limit: np.full(SLOTS, limit - 1, dtype=np.uint64))
    first = second = np.zeros((5, 1), dtype=np.int64)
    mine, theirs = shares(owner, first, second, (SLOTS, 1))  # a row a ciphertext: five in one slot
    assert (mine + theirs)[0, 0] == 5
    assert not (mine + theirs)[1:].any()


def test_the_flood_is_as_deep_as_is_said_and_no_deeper_than_there_is_room(
    owner: OwnerKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two bits more and the total would be unreadable: the flood is there, and as large as a ciphertext can bear."""
    other, mask = OtherKey(owner.public()), np.full(SLOTS, 7, dtype=np.uint64)
    ciphertext = owner.encrypt(np.ones(SLOTS, dtype=np.int64))
    total = other.added(b"", [(ciphertext, np.arange(SLOTS) % 2)] * 8)
    np.testing.assert_array_equal(owner.open(other.hidden(total, mask)), 7 + 8 * (np.arange(SLOTS) % 2))
    monkeypatch.setattr(bfv, "FLOOD_BITS", FLOOD_BITS + 2)
    assert (owner.open(other.hidden(total, mask)) != 7 + 8 * (np.arange(SLOTS) % 2)).any()


def test_how_far_the_owners_view_can_depend_on_the_others_rows() -> None:
    """Adult, cut into eight and seven columns, and a million people."""
    adult, columns = (95, 66), (8, 7)
    assert 2**-27 < distance(32_561, adult, columns) < 2**-26
    assert 2**-22 < distance(10**6, adult, columns) < 2**-21
    assert distance(32_561, adult, columns) < distance(32_562, (96, 67), (9, 8))


def noise_of(owner: OwnerKey, ciphertext: bytes) -> float:
    """The largest coefficient of an encryption of zeros: a constant factor multiplies it and nothing else, until zeros
    come out as something else. That is where it reaches q / 2t."""
    other = OtherKey(owner.public())

    def opens(bits: int) -> bool:
        found = ciphertext
        while bits:
            found = other.added(b"", [(found, np.full(SLOTS, 1 << min(bits, 48)))])
            bits -= min(bits, 48)
        return not owner.open(found).any()

    fits = max((bits for bits in range(0, 129, 8) if opens(bits)), default=0)
    fits = max(bits for bits in range(fits, fits + 8) if opens(bits))
    return 2.0 ** (129 - fits)  # between this and half of it


def test_noise_is_within_what_the_proof_says_of_it(owner: OwnerKey) -> None:
    """Fresh, and of products with factors whose coefficients are of full size."""
    zeros, factor = owner.encrypt(np.zeros(SLOTS, dtype=np.int64)), np.random.default_rng(1).integers(2, size=SLOTS)
    assert 2**4 < noise_of(owner, zeros) / 2 < FRESH_NOISE
    product = OtherKey(owner.public()).added(b"", [(zeros, factor)] * 4)
    bound = flood_distance(4, 1) * 2.0**FLOOD_BITS / SLOTS
    assert 2**-20 < noise_of(owner, product) / bound < 1


def test_totals_of_the_same_rows_are_never_the_same_bytes(owner: OwnerKey) -> None:
    other, mask = OtherKey(owner.public()), np.zeros(SLOTS, dtype=np.uint64)
    total = other.added(b"", [(owner.encrypt(np.ones(3, dtype=np.int64)), np.ones(3, dtype=np.int64))])
    assert other.hidden(total, mask) != other.hidden(total, mask)
    np.testing.assert_array_equal(owner.open(other.hidden(b"", mask)), mask)  # a bin without anybody


def test_what_does_not_fit_is_refused(owner: OwnerKey) -> None:
    other, public = OtherKey(owner.public()), owner.public()
    rows = encrypted_rows(owner, np.zeros((3, 1), dtype=np.int64), 2, 0)
    with pytest.raises(WrongContext):
        OtherKey(OwnerKey.make())  # with the secret half
    with pytest.raises(WrongContext):
        OwnerKey(public)
    with pytest.raises(Malformed):
        added(other, [b""], rows[:-1], np.zeros((3, 1), dtype=np.int64), (2, 1), 0)
    with pytest.raises(Malformed):
        opened(owner, totals_letter([], 0), (2, 1), 0)
    with pytest.raises(CryptoError):
        other.added(b"x" * 99, [])
    with pytest.raises(WrongShape):
        rows_up(5, SLOTS + 1)
    with pytest.raises(WrongShape):
        other.hidden(b"", np.full(SLOTS, PLAIN, dtype=np.uint64))


def test_nobody_without_a_place_is_counted(owner: OwnerKey) -> None:
    nobody = np.full((4, 1), ABSENT, dtype=np.int64)
    mine, theirs = shares(owner, nobody, np.zeros((4, 1), dtype=np.int64), (2, 2))
    assert not (mine + theirs).any()
