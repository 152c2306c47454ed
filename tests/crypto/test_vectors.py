"""Counts and reals as one vector, in the ring and in slots: counts come out exact, reals within the bound."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.ckks import PartyContext
from crypto.confirming import consent_bytes, cover, own_seed, uncover
from crypto.errors import Forged, Malformed, OutOfRange, TooFewParties, WrongShape
from crypto.masking import mask, masked_sum
from crypto.ring_digits import RingDigits
from crypto.vectors import EncryptedVectors, MaskedVectors, Shape
from tests.crypto.federations import EVERY_DIFFERENCE, NAMES, Federation, build_federation, moment_of

MOMENT = moment_of(3)


@settings(max_examples=60, deadline=None)
@given(
    parties=st.integers(2, 300),
    bits=st.sampled_from([32, 64]),
    entries=st.integers(1, 20),
    seed=st.integers(0, 2**32),
)
def test_digits_add_up_modulo_the_ring(parties: int, bits: int, entries: int, seed: int) -> None:
    ring = np.random.default_rng(seed).integers(0, 2**bits, (parties, entries), dtype=np.uint64)
    ring = ring.astype(np.uint32 if bits == 32 else np.uint64)
    digits = RingDigits(32 if bits == 32 else 64, parties)
    total = digits.decode(np.sum([digits.encode(vector) for vector in ring], axis=0))
    assert np.array_equal(total, ring.sum(axis=0, dtype=ring.dtype))


def test_a_sum_of_digits_that_is_not_whole_was_altered() -> None:
    digits = RingDigits(32, 3)
    slots = digits.encode(np.array([7, 8], dtype=np.uint32))
    for altered in (slots + 0.4, slots - 100.0):
        with pytest.raises(Forged):
            digits.decode(altered)
    with pytest.raises(WrongShape):
        digits.decode(slots[:-1])


@settings(max_examples=40, deadline=None)
@given(
    counts=st.lists(st.integers(-(10**6), 10**6), max_size=30),
    reals=st.lists(st.floats(-1000, 1000), min_size=1, max_size=30),
    confirmed=st.booleans(),
)
def test_masked_vectors(counts: list[int], reals: list[float], confirmed: bool) -> None:
    hospitals = build_federation(NAMES)
    vectors = MaskedVectors(Shape(len(counts), len(reals), 10**7, 1024.0, 3))
    sent, seeds = [], {}
    for name in NAMES:
        vector = vectors.encode(np.array(counts, dtype=np.int64), np.array(reals))
        vector = mask(vector, me=name, secrets=hospitals.secrets[name], moment=MOMENT)
        seeds[name] = own_seed(hospitals.sessions[name], MOMENT)
        sent.append((name, cover(vector, seeds[name]) if confirmed else vector))
    total = masked_sum(sent, parties=NAMES)
    if confirmed:
        total = uncover(total, seeds, parties=NAMES)
    opened_counts, opened_reals = vectors.decode(total)
    assert opened_counts.tolist() == [3 * count for count in counts]
    assert np.abs(opened_reals - 3 * np.array(reals)).max() <= vectors.error_bound + 1e-12


@settings(max_examples=15, deadline=None)
@given(
    counts=st.lists(st.integers(-(10**6), 10**6), max_size=30),
    reals=st.lists(st.floats(-1000, 1000), min_size=1, max_size=30),
    limit=st.sampled_from([10**7, 10**12]),
    confirmed=st.booleans(),
)
def test_encrypted_vectors(
    ckks_key: PartyContext, counts: list[int], reals: list[float], limit: int, confirmed: bool
) -> None:
    hospitals, key = build_federation(NAMES), ckks_key
    vectors = EncryptedVectors(Shape(len(counts), len(reals), limit, 1024.0, 3))
    sent, seeds = [], {name: own_seed(hospitals.sessions[name], MOMENT) for name in NAMES}
    for name in NAMES:
        ring = vectors.ring(np.array(counts)) if counts else np.empty(0, dtype=np.uint32)
        ring = mask(ring, me=name, secrets=hospitals.secrets[name], moment=MOMENT) if counts else ring
        ring = cover(ring, seeds[name]) if counts and confirmed else ring
        sent.append((name, key.encrypt(vectors.slots(ring, np.array(reals)), parties=3)))
    total, opened_reals = vectors.parts(key.open(sent, length=vectors.size, parties=NAMES))
    if counts and confirmed:
        assert vectors.counts(total).tolist() != [3 * count for count in counts]  # false alarm: 2^-32
        total = uncover(total, seeds, parties=NAMES)
    assert vectors.counts(total).tolist() == [3 * count for count in counts]
    assert np.abs(opened_reals - 3 * np.array(reals)).max() <= vectors.error_bound
    assert np.array_equal(opened_reals, np.rint(opened_reals / vectors.step) * vectors.step)


def test_shapes_and_ranges_are_refused() -> None:
    vectors = MaskedVectors(Shape(2, 1, 100, 1024.0, 3))
    with pytest.raises(WrongShape):
        vectors.encode(np.array([1]), np.array([1.0]))
    with pytest.raises(WrongShape):
        vectors.decode(np.zeros(4, dtype=np.uint64))
    with pytest.raises(OutOfRange):
        vectors.encode(np.array([1, 101]), np.array([1.0]))
    with pytest.raises(WrongShape):
        EncryptedVectors(vectors.shape).parts(np.zeros(4))


def test_own_masks_come_off_only_all_together(hospitals: Federation) -> None:
    vector = np.arange(1000, dtype=np.uint64)
    seeds = {name: own_seed(hospitals.sessions[name], MOMENT) for name in NAMES}
    covered = cover(vector, seeds["oslo"])
    assert not np.any(covered == vector)  # false alarm: 1000 / 2^64
    with pytest.raises(TooFewParties):
        uncover(covered, {"oslo": seeds["oslo"], "lyon": seeds["lyon"]}, parties=NAMES)
    with pytest.raises(Malformed):
        uncover(covered, seeds | {"oslo": b"short"}, parties=NAMES)


def test_seeds_belong_to_one_run_plan_epoch_list_round_and_question(hospitals: Federation) -> None:
    session = hospitals.sessions["oslo"]
    assert len({own_seed(session, moment) for moment in EVERY_DIFFERENCE}) == len(EVERY_DIFFERENCE)
    assert consent_bytes(b"a") != consent_bytes(b"b")


@pytest.mark.parametrize("parties", [2, 3, 7])
def test_shares_of_counts_add_up_in_either_ring_and_no_carry_survives(parties: int) -> None:
    rng = np.random.default_rng(parties)
    shape = Shape(counts=50, reals=1, count_limit=None, real_clip=8.0, parties=parties)
    counts = rng.integers(-(2**30), 2**30, 50)
    shares = rng.integers(0, 2**32, (parties, 50))
    shares[-1] = (counts - shares[:-1].sum(axis=0)) % 2**32
    masked, encrypted = MaskedVectors(shape), EncryptedVectors(shape)
    total = np.sum([masked.encode(share, np.zeros(1)) for share in shares], axis=0, dtype=np.uint64)
    np.testing.assert_array_equal(masked.decode(total)[0], counts)
    assert not (total[:50] & np.uint64(2**32 - 1)).any()  # what exceeds 2^32 fell off
    ring = np.sum([encrypted.ring(share) for share in shares], axis=0, dtype=np.uint32)
    np.testing.assert_array_equal(encrypted.counts(ring), counts)
