"""CKKS sums: parties open sums of everybody, the aggregator opens nothing, everything else is refused."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
import tenseal as ts
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from crypto.ckks import PartyContext, PublicContext
from crypto.encrypted import CHUNK_BYTES, VALUES_PER_CHUNK, EncryptedVector
from crypto.errors import (
    CryptoError,
    DuplicateParty,
    Forged,
    Malformed,
    NotFinite,
    OutOfRange,
    TooFewParties,
    UnknownIdentity,
    WrongContext,
    WrongShape,
)
from crypto.rounds import Round
from crypto.sealed import seal, unseal
from crypto.slots import SLOT_LIMIT, SlotCounts, SlotReals
from tests.crypto.federations import Federation

Sent = list[tuple[str, bytes]]  # party name, encrypted vector
NAMES = ("berlin", "lyon", "oslo")
MOMENT = Round("run-1", 0, 2)


def encrypted(
    key: PartyContext,
    vectors: Iterable[NDArray[np.float64]],
    names: tuple[str, ...] = NAMES,
    moment: Round = MOMENT,
) -> Sent:
    return [
        (name, key.encrypt(vector, party=name, parties=names, moment=moment))
        for name, vector in zip(names, vectors, strict=True)
    ]


@pytest.fixture(scope="module")
def sent(ckks_key: PartyContext) -> Sent:
    return encrypted(ckks_key, [np.full(5, float(value)) for value in (1, 10, 100)])


def test_all_parties_open_what_the_aggregator_added(ckks_key: PartyContext, sent: Sent) -> None:
    aggregator = PublicContext(ckks_key.public.data)
    total = aggregator.add(sent, length=5, parties=NAMES)
    for party in (ckks_key, PartyContext(ckks_key.secret_bytes())):
        opened = party.open(total, length=5, parties=NAMES, moment=MOMENT)
        assert np.abs(opened - 111).max() < 1e-6


@settings(max_examples=25, deadline=None)
@given(
    parties=st.integers(2, 6),
    length=st.sampled_from([1, VALUES_PER_CHUNK - 1, VALUES_PER_CHUNK, VALUES_PER_CHUNK + 1]),
    clip=st.sampled_from([1e-4, 1.0, 37.0, 1e6]),
    epoch=st.integers(0, 2**40),
    number=st.integers(0, 2**40),
    seed=st.integers(0, 2**32),
)
def test_the_sum_of_reals_is_within_its_bound(
    ckks_key: PartyContext, parties: int, length: int, clip: float, epoch: int, number: int, seed: int
) -> None:
    names = tuple(f"party-{index}" for index in range(parties))
    codec, moment = SlotReals(clip, parties), Round("run-1", epoch, number)
    vectors = np.random.default_rng(seed).uniform(-clip, clip, (parties, length))
    vectors[:, 0] = clip
    sent = encrypted(ckks_key, [codec.encode(vector) for vector in vectors], names, moment)
    total = ckks_key.public.add(sent, length=length, parties=names)
    opened = codec.decode(ckks_key.open(total, length=length, parties=names, moment=moment))
    assert np.abs(opened - vectors.sum(axis=0)).max() <= codec.error_bound
    assert codec.error_bound <= 1e-6 * max(clip, 1.0)


@settings(max_examples=15, deadline=None)
@given(limit=st.integers(1, 10**12), seed=st.integers(0, 2**32))
def test_the_sum_of_counts_is_exact_however_large_the_table(ckks_key: PartyContext, limit: int, seed: int) -> None:
    codec = SlotCounts(limit, 3)
    vectors = np.random.default_rng(seed).integers(-limit, limit, (3, 700), endpoint=True)
    vectors[:, 0], vectors[:, 1] = limit, -limit
    length = codec.slots(700)
    sent = encrypted(ckks_key, [codec.encode(vector) for vector in vectors])
    total = ckks_key.public.add(sent, length=length, parties=NAMES)
    opened = codec.decode(ckks_key.open(total, length=length, parties=NAMES, moment=MOMENT))
    assert np.array_equal(opened, vectors.sum(axis=0))


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
    total = ckks_key.public.add(sent, length=5, parties=NAMES)
    assert np.allclose(PartyContext(letter).open(total, length=5, parties=NAMES, moment=MOMENT), 111)


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
        ckks_key.encrypt(vector, party="oslo", parties=NAMES, moment=MOMENT)


def test_only_declared_parties_encrypt_and_never_alone(ckks_key: PartyContext) -> None:
    with pytest.raises(UnknownIdentity):
        ckks_key.encrypt(np.zeros(3), party="atlantis", parties=NAMES, moment=MOMENT)
    with pytest.raises(TooFewParties):
        ckks_key.encrypt(np.zeros(3), party="oslo", parties=("oslo",), moment=MOMENT)


def test_the_aggregator_refuses_other_sums_and_the_run_goes_on(
    ckks_key: PartyContext, other_ckks_key: PartyContext, sent: Sent
) -> None:
    public = ckks_key.public
    foreign = other_ckks_key.encrypt(np.zeros(5), party="oslo", parties=NAMES, moment=MOMENT)
    longer = ckks_key.encrypt(np.zeros(6), party="oslo", parties=NAMES, moment=MOMENT)
    summed = public.add(sent, length=5, parties=NAMES)
    overflowing = EncryptedVector(public.digest, 5, 1, b"\xff" * CHUNK_BYTES).to_bytes()
    for received, refusal in [
        (sent[:2], TooFewParties),
        ([*sent, sent[0]], DuplicateParty),
        ([*sent, ("atlantis", sent[0][1])], UnknownIdentity),
        ([*sent[:2], ("oslo", foreign)], WrongContext),
        ([*sent[:2], ("oslo", longer)], WrongShape),
        ([*sent[:2], ("oslo", summed)], WrongShape),
        ([*sent[:2], ("oslo", sent[2][1][:-1])], Malformed),
        ([*sent[:2], ("oslo", overflowing)], Malformed),
    ]:
        with pytest.raises(refusal):
            public.add(received, length=5, parties=NAMES)
    with pytest.raises(TooFewParties):
        public.add(sent, length=5, parties=NAMES, minimum=4)
    total = public.add(sent, length=5, parties=NAMES)
    assert np.allclose(ckks_key.open(total, length=5, parties=NAMES, moment=MOMENT), 111)


def relabelled(key: PartyContext, contributions: list[bytes], terms: int = 3) -> bytes:
    """What a cheating aggregator sends: the sum of these, declared as a sum of everybody."""
    names = [f"x{index}" for index in range(len(contributions))]
    honest = key.public.add(zip(names, contributions, strict=True), length=5, parties=names)
    body = EncryptedVector.from_bytes(honest).body
    return EncryptedVector(key.public.digest, 5, terms, body).to_bytes()


def test_a_cheating_aggregator_opens_no_smaller_sum(ckks_key: PartyContext, sent: Sent) -> None:
    berlin, lyon, oslo = (message for _, message in sent)
    # The aggregator can encrypt whatever it likes with the public key, but not the numbers of the roll call.
    zero = ts.ckks_vector(ts.context_from(ckks_key.public.data, n_threads=1), np.zeros(2048)).serialize()
    filler = EncryptedVector(ckks_key.public.digest, 5, 1, zero[131 : 131 + CHUNK_BYTES]).to_bytes()
    single = EncryptedVector(ckks_key.public.digest, 5, 3, EncryptedVector.from_bytes(berlin).body).to_bytes()
    for cheat in [
        single,
        relabelled(ckks_key, [berlin, lyon]),
        relabelled(ckks_key, [berlin, berlin, berlin]),
        relabelled(ckks_key, [berlin, lyon, lyon]),
        relabelled(ckks_key, [berlin, filler, filler]),
        relabelled(ckks_key, [berlin, lyon, oslo, oslo]),
    ]:
        with pytest.raises(Forged):
            ckks_key.open(cheat, length=5, parties=NAMES, moment=MOMENT)
    for harmless in (relabelled(ckks_key, [oslo, berlin, lyon]), relabelled(ckks_key, [berlin, lyon, oslo, filler])):
        assert np.allclose(ckks_key.open(harmless, length=5, parties=NAMES, moment=MOMENT), 111)


@pytest.mark.parametrize("moment", [Round("run-1", 0, 3), Round("run-1", 1, 2), Round("run-2", 0, 2)])
def test_an_old_sum_is_not_opened_as_a_new_one(ckks_key: PartyContext, sent: Sent, moment: Round) -> None:
    total = ckks_key.public.add(sent, length=5, parties=NAMES)
    with pytest.raises(Forged):
        ckks_key.open(total, length=5, parties=NAMES, moment=moment)


def test_chunks_cannot_be_exchanged(ckks_key: PartyContext) -> None:
    length = 2 * VALUES_PER_CHUNK
    total = ckks_key.public.add(encrypted(ckks_key, [np.ones(length)] * 3), length=length, parties=NAMES)
    body = EncryptedVector.from_bytes(total).body
    swapped = EncryptedVector(ckks_key.public.digest, length, 3, body[CHUNK_BYTES:] + body[:CHUNK_BYTES])
    with pytest.raises(Forged):
        ckks_key.open(swapped.to_bytes(), length=length, parties=NAMES, moment=MOMENT)


def test_openers_refuse_other_claims(ckks_key: PartyContext, other_ckks_key: PartyContext, sent: Sent) -> None:
    total = ckks_key.public.add(sent, length=5, parties=NAMES)
    with pytest.raises(WrongContext):
        other_ckks_key.open(total, length=5, parties=NAMES, moment=MOMENT)
    with pytest.raises(WrongShape):
        ckks_key.open(total, length=4, parties=NAMES, moment=MOMENT)
    with pytest.raises(WrongShape):
        ckks_key.open(sent[0][1], length=5, parties=NAMES, moment=MOMENT)
    with pytest.raises(WrongShape):
        ckks_key.open(total, length=5, parties=NAMES[:2], moment=MOMENT)
    with pytest.raises(TooFewParties):
        ckks_key.open(sent[0][1], length=5, parties=("berlin",), moment=MOMENT, minimum=1)
    relabelled_context = EncryptedVector(
        other_ckks_key.public.digest, 5, 3, EncryptedVector.from_bytes(total).body
    ).to_bytes()
    with pytest.raises(Forged):
        other_ckks_key.open(relabelled_context, length=5, parties=NAMES, moment=MOMENT)


def test_the_context_that_the_aggregator_offers_is_never_used(ckks_key: PartyContext) -> None:
    """A party's public half comes from its secret, so both always belong together."""
    assert PartyContext(ckks_key.secret_bytes()).public.digest == ckks_key.public.digest
