"""Reals and counts through the ring and through slots: within the stated bound, exact, or refused."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from crypto.errors import CryptoError, NotFinite, OutOfRange, TooFewParties, WrongShape
from crypto.quantize import Counts, FixedPoint, narrowest_counts, narrowest_fixed_point
from crypto.slots import SLOT_LIMIT, SlotReals

RealCodec = FixedPoint | SlotReals
clips = st.floats(1e-6, 1e6)
party_counts = st.integers(2, 100)
REAL_CODECS = [FixedPoint(1.0, 3, 32), FixedPoint(1.0, 3, 64), SlotReals(1.0, 3)]
COUNT_CODECS = [Counts(1000, 3, 32), Counts(1000, 3, 64)]


@given(clip=clips, parties=party_counts, bits=st.sampled_from([32, 64]), data=st.data())
def test_the_sum_of_reals_is_within_its_bound(
    clip: float, parties: int, bits: Literal[32, 64], data: st.DataObject
) -> None:
    codec = FixedPoint(clip, parties, bits)
    vectors = data.draw(arrays(np.float64, (parties, 4), elements=st.floats(-clip, clip)))
    vectors[:, 0], vectors[:, 1] = clip, -clip  # the corners, where a wrap would show
    total = sum((codec.encode(vector) for vector in vectors[1:]), start=codec.encode(vectors[0]))
    exact = [sum(map(Fraction, column.tolist())) for column in vectors.T]
    for opened, true in zip(codec.decode(total).tolist(), exact, strict=True):
        assert abs(Fraction(opened) - true) <= Fraction(codec.error_bound)


@given(limit=st.integers(1, 10**15), parties=party_counts, data=st.data())
def test_the_sum_of_counts_is_exact(limit: int, parties: int, data: st.DataObject) -> None:
    vectors = data.draw(arrays(np.int64, (parties, 4), elements=st.integers(-limit, limit)))
    vectors[:, 0], vectors[:, 1] = limit, -limit
    ring = narrowest_counts(limit, parties)
    ring_total = sum((ring.encode(vector) for vector in vectors[1:]), start=ring.encode(vectors[0]))
    assert np.array_equal(ring.decode(ring_total), vectors.sum(axis=0))


@given(clip=clips, parties=party_counts)
def test_slot_reals_fill_but_never_exceed_their_share(clip: float, parties: int) -> None:
    codec = SlotReals(clip, parties)
    share = SLOT_LIMIT / parties
    assert share / 2 < codec.encode(np.array([clip]))[0] <= share


@pytest.mark.parametrize("parties", [2, 10])
def test_the_narrow_ring_is_chosen_where_it_is_precise_enough(parties: int) -> None:
    codec = narrowest_fixed_point(4.0, parties)
    assert codec.bits == 32
    assert codec.error_bound <= 1e-7 * 4.0


def test_the_wide_ring_is_chosen_where_the_narrow_one_is_too_coarse() -> None:
    assert narrowest_fixed_point(4.0, 100).bits == 64
    assert narrowest_counts(10**6, 100).bits == 32
    assert narrowest_counts(10**8, 100).bits == 64


@pytest.mark.parametrize("codec", REAL_CODECS)
@pytest.mark.parametrize(
    ("vector", "refusal"),
    [
        (np.array([0.0, np.nan]), NotFinite),
        (np.array([0.0, np.inf]), NotFinite),
        (np.array([0.0, -np.inf]), NotFinite),
        (np.array([np.nan, 2.0]), NotFinite),
        (np.array([0.5, 1.0000001]), OutOfRange),
        (np.array([0.5, -1.0000001], dtype=np.float32), OutOfRange),
        (np.zeros((2, 2)), WrongShape),
        (np.zeros(0), WrongShape),
        (np.zeros(3, dtype=np.int64), WrongShape),
    ],
)
def test_unfit_reals_are_refused(codec: RealCodec, vector: NDArray[Any], refusal: type[CryptoError]) -> None:
    with pytest.raises(refusal):
        codec.encode(vector)


@pytest.mark.parametrize("codec", COUNT_CODECS)
@pytest.mark.parametrize(
    ("vector", "refusal"),
    [
        (np.array([0, 10**9 + 1]), OutOfRange),
        (np.array([0, -(10**9) - 1]), OutOfRange),
        (np.array([np.iinfo(np.int64).min]), OutOfRange),
        (np.array([2**64 - 1], dtype=np.uint64), OutOfRange),
        (np.array([1.0]), WrongShape),
        (np.zeros((2, 2), dtype=np.int64), WrongShape),
        (np.zeros(0, dtype=np.int64), WrongShape),
    ],
)
def test_unfit_counts_are_refused(codec: Counts, vector: NDArray[Any], refusal: type[CryptoError]) -> None:
    with pytest.raises(refusal):
        codec.encode(vector)


def test_a_refusal_does_not_tell_the_value() -> None:
    with pytest.raises(OutOfRange) as refusal:
        FixedPoint(1.0, 2).encode(np.array([1234.5678]))
    assert "1234" not in str(refusal.value)


@pytest.mark.parametrize(
    ("make", "refusal"),
    [
        (lambda: FixedPoint(1.0, 1), TooFewParties),
        (lambda: Counts(5, 1), TooFewParties),
        (lambda: SlotReals(1.0, 1), TooFewParties),
        (lambda: SlotReals(1.0, 5000), OutOfRange),
        (lambda: FixedPoint(0.0, 2), OutOfRange),
        (lambda: FixedPoint(float("nan"), 2), OutOfRange),
        (lambda: FixedPoint(float("inf"), 2), OutOfRange),
        (lambda: SlotReals(-1.0, 2), OutOfRange),
        (lambda: Counts(0, 2), OutOfRange),
        (lambda: Counts(2**30, 2, 32), OutOfRange),
        (lambda: Counts(2**62, 2), OutOfRange),
    ],
)
def test_a_range_whose_sum_could_wrap_is_refused(make: Callable[[], object], refusal: type[CryptoError]) -> None:
    with pytest.raises(refusal):
        make()


def test_a_sum_of_the_other_ring_is_refused() -> None:
    with pytest.raises(WrongShape):
        FixedPoint(1.0, 2, 64).decode(np.zeros(3, dtype=np.uint32))
