"""CKKS sums: parties add up and open everybody's vectors, the aggregator opens nothing, everything else is refused."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
import tenseal as ts
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from crypto.ckks import PartyContext, PublicContext
from crypto.encrypted import CHUNK_BYTES, SLOTS, EncryptedVector
from crypto.errors import (
    CryptoError,
    DuplicateParty,
    Malformed,
    NotFinite,
    OutOfRange,
    TooFewParties,
    UnknownIdentity,
    WrongContext,
    WrongShape,
)
from crypto.sealed import seal, unseal
from crypto.slots import SLOT_LIMIT, SlotReals
from tests.crypto.federations import NAMES, Federation

Sent = list[tuple[str, bytes]]  # party name, encrypted vector


def encrypted(key: PartyContext, vectors: Iterable[NDArray[np.float64]], names: tuple[str, ...] = NAMES) -> Sent:
    return [(name, key.encrypt(vector, parties=len(names))) for name, vector in zip(names, vectors, strict=True)]


@pytest.fixture(scope="module")
def sent(ckks_key: PartyContext) -> Sent:
    return encrypted(ckks_key, [np.full(5, float(value)) for value in (1, 10, 100)])


def test_all_parties_open_the_sum(ckks_key: PartyContext, sent: Sent) -> None:
    for party in (ckks_key, PartyContext(ckks_key.secret_bytes())):
        opened = party.open(sent, length=5, parties=NAMES)
        assert np.abs(opened - 111).max() < 1e-6


def test_adding_is_deterministic(ckks_key: PartyContext, sent: Sent) -> None:
    """Two openers of the same ciphertexts open the same bytes, in whatever order these came."""
    total = ckks_key.public.add(sent, length=5, parties=NAMES)
    assert PublicContext(ckks_key.public.data).add(sent[::-1], length=5, parties=NAMES) == total


@settings(max_examples=25, deadline=None)
@given(
    parties=st.integers(2, 6),
    length=st.sampled_from([1, SLOTS - 1, SLOTS, SLOTS + 1]),
    clip=st.sampled_from([1e-4, 1.0, 37.0, 1e6]),
    seed=st.integers(0, 2**32),
)
def test_the_sum_of_reals_is_within_its_bound(
    ckks_key: PartyContext, parties: int, length: int, clip: float, seed: int
) -> None:
    names = tuple(f"party-{index}" for index in range(parties))
    codec = SlotReals(clip, parties)
    vectors = np.random.default_rng(seed).uniform(-clip, clip, (parties, length))
    vectors[:, 0] = clip
    sent = encrypted(ckks_key, [codec.encode(vector) for vector in vectors], names)
    opened = codec.decode(ckks_key.open(sent, length=length, parties=names))
    assert np.abs(opened - vectors.sum(axis=0)).max() <= codec.error_bound
    assert codec.error_bound <= 1e-6 * max(clip, 1.0)


def test_the_aggregator_holds_no_key_but_the_public_one(ckks_key: PartyContext, sent: Sent) -> None:
    held = ts.context_from(ckks_key.public.data, n_threads=1)
    assert held.has_public_key()
    assert not any((held.has_secret_key(), held.has_galois_keys(), held.has_relin_keys()))
    aggregator = PublicContext(ckks_key.public.data)
    holdings = [value for value in vars(aggregator).values() if isinstance(value, bytes)]
    secret_only = ts.context_from(ckks_key.secret_bytes()).serialize(
        save_public_key=False, save_secret_key=True, save_galois_keys=False, save_relin_keys=False
    )
    for held_bytes in [*holdings, *(message for _, message in sent)]:
        assert secret_only[-20_000:] not in held_bytes
    assert secret_only[-20_000:] in ckks_key.secret_bytes()  # so the lines above could have failed
    with pytest.raises(WrongContext):
        PartyContext(aggregator.data)


def test_a_public_context_with_a_secret_is_refused(ckks_key: PartyContext) -> None:
    with pytest.raises(WrongContext, match="secret"):
        PublicContext(ckks_key.secret_bytes())


@pytest.mark.parametrize(
    ("degree", "bits", "scale"), [(4096, [36, 36, 37], 2.0**30), (8192, [60, 49], 2.0**40), (4096, [60, 49], 2.0**30)]
)
def test_a_context_with_other_parameters_is_refused(degree: int, bits: list[int], scale: float) -> None:
    weak = ts.context(ts.SCHEME_TYPE.CKKS, degree, coeff_mod_bit_sizes=bits, n_threads=1)
    weak.global_scale = scale
    secret = weak.serialize(save_secret_key=True, save_galois_keys=False, save_relin_keys=False)
    with pytest.raises(WrongContext):
        PartyContext(secret)


def test_a_context_with_relinearisation_keys_is_refused() -> None:
    generous = ts.context(ts.SCHEME_TYPE.CKKS, 4096, coeff_mod_bit_sizes=[60, 49], n_threads=1)
    generous.global_scale = 2.0**40
    with pytest.raises(WrongContext):
        PublicContext(generous.serialize(save_secret_key=False, save_galois_keys=False))


def test_the_key_travels_in_a_sealed_box(hospitals: Federation, ckks_key: PartyContext, sent: Sent) -> None:
    box = seal(
        ckks_key.secret_bytes(),
        key=hospitals.identities["berlin"],
        sender="berlin",
        recipient=hospitals.admitted["oslo"],
        purpose="ckks key",
    )
    assert ckks_key.secret_bytes()[-1000:] not in box
    letter = unseal(
        box,
        session=hospitals.sessions["oslo"],
        recipient=hospitals.admitted["oslo"],
        sender="berlin",
        roster=hospitals.roster,
        purpose="ckks key",
    )
    assert np.allclose(PartyContext(letter).open(sent, length=5, parties=NAMES), 111)


@pytest.mark.parametrize(
    ("vector", "refusal"),
    [
        (np.array([SLOT_LIMIT / 3 + 1]), OutOfRange),
        (np.array([-5e5]), OutOfRange),
        (np.array([np.nan]), NotFinite),
        (np.array([np.inf]), NotFinite),
        (np.zeros(0), WrongShape),
        (np.zeros((2, 2)), WrongShape),
        (np.zeros(2, dtype=np.int64), WrongShape),
    ],
)
def test_unfit_vectors_are_refused_before_encryption(
    ckks_key: PartyContext, vector: NDArray[Any], refusal: type[CryptoError]
) -> None:
    with pytest.raises(refusal):
        ckks_key.encrypt(vector, parties=3)


def test_nobody_encrypts_alone(ckks_key: PartyContext) -> None:
    with pytest.raises(TooFewParties):
        ckks_key.encrypt(np.zeros(3), parties=1)


def test_other_sums_are_refused_and_the_run_goes_on(
    ckks_key: PartyContext, other_ckks_key: PartyContext, sent: Sent
) -> None:
    foreign = other_ckks_key.encrypt(np.zeros(5), parties=3)
    longer = ckks_key.encrypt(np.zeros(6), parties=3)
    overflowing = EncryptedVector(ckks_key.public.digest, 5, b"\xff" * CHUNK_BYTES).to_bytes()
    for received, refusal in [
        (sent[:2], TooFewParties),
        ([*sent, sent[0]], DuplicateParty),
        ([*sent, ("atlantis", sent[0][1])], UnknownIdentity),
        ([*sent[:2], ("oslo", foreign)], WrongContext),
        ([*sent[:2], ("oslo", longer)], WrongShape),
        ([*sent[:2], ("oslo", sent[2][1][:-1])], Malformed),
        ([*sent[:2], ("oslo", overflowing)], Malformed),
    ]:
        with pytest.raises(refusal):
            ckks_key.open(received, length=5, parties=NAMES)
    with pytest.raises(TooFewParties):
        ckks_key.open(sent, length=5, parties=NAMES, minimum=4)
    with pytest.raises(TooFewParties):
        ckks_key.open(sent[:1], length=5, parties=NAMES[:1], minimum=1)
    with pytest.raises(WrongContext):
        other_ckks_key.open(sent, length=5, parties=NAMES)
    assert np.allclose(ckks_key.open(sent, length=5, parties=NAMES), 111)


def test_the_context_that_the_aggregator_offers_is_never_used(ckks_key: PartyContext) -> None:
    """A party's public half comes from its secret, so both always belong together."""
    assert PartyContext(ckks_key.secret_bytes()).public.digest == ckks_key.public.digest
