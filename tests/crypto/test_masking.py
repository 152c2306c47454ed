"""Masked sums: the sum opens, nothing less does."""

import hmac
import json
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2

from crypto.errors import DuplicateParty, TooFewParties, UnknownIdentity, WrongEpoch, WrongPlan, WrongRun, WrongShape
from crypto.masking import RingVector, mask, masked_sum
from crypto.pairing import PairSecret
from crypto.quantize import FixedPoint
from crypto.rounds import KeyPeriod, Round
from tests.crypto.federations import Federation, build_federation, moment_of

KNOWN = json.loads((Path(__file__).parent / "known_answers.json").read_text())


def contributions(federation: Federation, vectors: Iterable[RingVector], moment: Round) -> list[tuple[str, RingVector]]:
    return [
        (name, mask(vector, me=name, secrets=federation.secrets[name], moment=moment))
        for name, vector in zip(federation.names, vectors, strict=True)
    ]


@settings(max_examples=60, deadline=None)
@given(
    names=st.lists(st.text(min_size=1, max_size=8), min_size=2, max_size=7, unique=True),
    run=st.text("abc-123", min_size=1),
    epoch=st.integers(0, 2**40),
    number=st.integers(0, 2**40),
    bits=st.sampled_from([32, 64]),
    lost=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_the_sum_of_opened_is_the_sum_of_inputs(
    names: list[str], run: str, epoch: int, number: int, bits: Literal[32, 64], lost: bool, seed: int
) -> None:
    if lost and len(names) > 2:  # the survivors of a lost party re-key to the next epoch and resend
        names, epoch = names[:-1], epoch + 1
    federation = build_federation(tuple(names), run=run, epoch=epoch)
    codec = FixedPoint(2.5, len(names), bits)
    vectors = np.random.default_rng(seed).uniform(-2.5, 2.5, (len(names), 33))
    encoded = [codec.encode(vector) for vector in vectors]
    sent = contributions(federation, encoded, moment_of(number, run=run, epoch=epoch, parties=tuple(names)))
    opened = codec.decode(masked_sum(sent, parties=names))
    assert np.abs(opened - vectors.sum(axis=0)).max() <= codec.error_bound + 1e-14


def test_order_of_arrival_does_not_matter(hospitals: Federation) -> None:
    vectors = [np.array([1, 2], dtype=np.uint64)] * 3
    sent = contributions(hospitals, vectors, moment_of())
    assert masked_sum(reversed(sent), parties=hospitals.names).tolist() == [3, 6]


def hkdf_by_the_book(secret: bytes, info: bytes) -> bytes:
    """RFC 5869 with an empty salt and one block, from the standard library."""
    key = hmac.digest(bytes(32), secret, "sha256")
    return hmac.digest(key, info + b"\x01", "sha256")


def fields(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


@pytest.mark.parametrize("answer", KNOWN["masks"], ids=lambda answer: answer["note"])
def test_masks_match_the_checked_in_answers(answer: dict[str, Any]) -> None:
    period = KeyPeriod(answer["run"], answer["plan"], answer["epoch"])
    secret = PairSecret(period, bytes.fromhex(answer["pair_secret"]))
    moment = Round(period, tuple(answer["parties"]), answer["round"], answer["question"])
    zeros = np.zeros(4, dtype=answer["ring"])
    first, second = answer["parties"]
    masked = mask(zeros, me=first, secrets={second: secret}, moment=moment)
    assert masked.tobytes().hex() == answer["mask"]
    opposite = mask(zeros, me=second, secrets={first: secret}, moment=moment)
    assert np.array_equal(masked + opposite, zeros)


@pytest.mark.parametrize("answer", KNOWN["masks"], ids=lambda answer: answer["note"])
def test_checked_in_answers_follow_from_the_standards(answer: dict[str, Any]) -> None:
    run, plan, question = (answer[name].encode() for name in ("run", "plan", "question"))
    period = fields(b"key period", run, plan, answer["epoch"].to_bytes(8, "big"))
    names = fields(b"parties", *(name.encode() for name in answer["parties"]))
    place = fields(b"round", period, names, answer["round"].to_bytes(8, "big"), question)
    key = hkdf_by_the_book(bytes.fromhex(answer["pair_secret"]), fields(b"mask stream", place))
    block = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    stream = block.update(bytes(16)) + block.update(bytes(15) + b"\x01")
    assert stream.hex().startswith(answer["mask"])


def test_keys_match_the_checked_in_answers(hospitals: Federation) -> None:
    answer = KNOWN["keys"]
    assert hospitals.roster["berlin"].fingerprint() == answer["berlin_fingerprint"]
    assert hospitals.messages["berlin"].hex() == answer["berlin_announcement"]
    assert hospitals.secrets["berlin"]["oslo"].secret.hex() == answer["berlin_oslo_pair_secret"]


# A curious aggregator keeps everything. Four parties send the worst vector there is, all zeros; for every proper
# subset it forms the sum, whose bytes must be uniform: chi-square over 256 values, 14 subsets in two rings, each
# at a level of 1e-6, so that a false alarm has a chance below 3e-5 (and, with fixed keys, none after the first).
@pytest.mark.parametrize("ring", ["<u4", "<u8"])
def test_every_proper_subset_of_masked_vectors_looks_uniform(ring: str) -> None:
    federation = build_federation(("a", "b", "c", "d"))
    zeros = [np.zeros(40_000, dtype=ring)] * 4
    sent = dict(contributions(federation, zeros, moment_of(9, parties=federation.names)))
    threshold = chi2.isf(1e-6, 255)
    for size in (1, 2, 3):
        for subset in combinations(sent, size):
            total = sum((sent[name] for name in subset[1:]), start=sent[subset[0]])
            seen = np.bincount(total.view(np.uint8), minlength=256)
            expected = seen.sum() / 256
            assert ((seen - expected) ** 2 / expected).sum() < threshold, subset
    assert not np.any(masked_sum(sent.items(), parties=federation.names))  # and the test has power: all four open


# The same record against the inputs and against itself: correlations of 40,000 pairs beyond 6 standard deviations
# have a chance of 2e-9 each.
def test_masked_vectors_are_unrelated_to_inputs_rounds_lists_questions_and_plans(hospitals: Federation) -> None:
    vector = FixedPoint(1.0, 3).encode(np.linspace(-1, 1, 40_000))
    me, secrets = "lyon", hospitals.secrets["lyon"]
    record = [
        mask(vector, me=me, secrets=secrets, moment=moment_of()),
        mask(vector, me=me, secrets=secrets, moment=moment_of(1)),
        mask(vector, me=me, secrets={"oslo": secrets["oslo"]}, moment=moment_of(parties=("lyon", "oslo"))),
        mask(vector, me=me, secrets=build_federation(hospitals.names, epoch=1).secrets[me], moment=moment_of(epoch=1)),
        mask(vector, me=me, secrets=secrets, moment=moment_of(question="question-2")),
        mask(
            vector,
            me=me,
            secrets=build_federation(hospitals.names, plan="plan-2").secrets[me],
            moment=moment_of(plan="plan-2"),
        ),
    ]
    signed = [each.view(np.int64).astype(float) for each in [vector, *record]]
    for first, second in combinations(signed, 2):
        assert abs(np.corrcoef(first, second)[0, 1]) < 6 / np.sqrt(40_000)
    differences = [(b - a).view(np.int64).astype(float) for a, b in combinations(record, 2)]
    for difference in differences:
        assert np.abs(difference).max() > 2.0**62  # subtracting two answers does not bring the vector back


def test_secrets_of_another_epoch_run_or_plan_do_not_mask(hospitals: Federation) -> None:
    vector = np.zeros(3, dtype=np.uint64)
    with pytest.raises(WrongEpoch):
        mask(vector, me="oslo", secrets=hospitals.secrets["oslo"], moment=moment_of(epoch=1))
    with pytest.raises(WrongRun):
        mask(vector, me="oslo", secrets=hospitals.secrets["oslo"], moment=moment_of(run="run-2"))
    with pytest.raises(WrongPlan):
        mask(vector, me="oslo", secrets=hospitals.secrets["oslo"], moment=moment_of(plan="plan-2"))


def test_a_vector_is_masked_for_the_list_of_its_round_only(hospitals: Federation) -> None:
    vector, secrets = np.zeros(3, dtype=np.uint64), hospitals.secrets["oslo"]
    with pytest.raises(UnknownIdentity):
        mask(vector, me="oslo", secrets=secrets, moment=moment_of(parties=("lyon", "oslo")))
    with pytest.raises(TooFewParties):
        mask(vector, me="oslo", secrets=secrets, moment=moment_of(parties=(*hospitals.names, "paris")))


def test_a_vector_is_not_masked_for_nobody(hospitals: Federation) -> None:
    vector, moment = np.zeros(3, dtype=np.uint64), moment_of()
    with pytest.raises(TooFewParties):
        mask(vector, me="oslo", secrets={}, moment=moment)
    with pytest.raises(TooFewParties):
        mask(vector, me="oslo", secrets={}, moment=moment_of(parties=("oslo",)))
    with pytest.raises(DuplicateParty):
        mask(vector, me="lyon", secrets=hospitals.secrets["oslo"], moment=moment)


@pytest.mark.parametrize(
    "vector", [np.zeros(3), np.zeros((1, 3), dtype=np.uint64), np.zeros(0, dtype=np.uint64), np.zeros(3, dtype=">u8")]
)
def test_a_vector_outside_the_ring_is_refused(hospitals: Federation, vector: NDArray[Any]) -> None:
    with pytest.raises(WrongShape):
        mask(vector, me="oslo", secrets=hospitals.secrets["oslo"], moment=moment_of())


def test_a_sum_over_other_parties_is_refused_and_the_run_goes_on(hospitals: Federation) -> None:
    sent = contributions(hospitals, [np.ones(3, dtype=np.uint64)] * 3, moment_of())
    with pytest.raises(TooFewParties, match="oslo"):
        masked_sum(sent[:2], parties=hospitals.names)
    with pytest.raises(DuplicateParty):
        masked_sum([*sent, sent[0]], parties=hospitals.names)
    with pytest.raises(UnknownIdentity):
        masked_sum([*sent, ("atlantis", sent[0][1])], parties=hospitals.names)
    with pytest.raises(TooFewParties):
        masked_sum(sent, parties=hospitals.names, minimum=4)
    with pytest.raises(WrongShape, match="oslo"):
        masked_sum([*sent[:2], ("oslo", np.ones(4, dtype=np.uint64))], parties=hospitals.names)
    with pytest.raises(WrongShape, match="oslo"):
        masked_sum([*sent[:2], ("oslo", np.ones(3, dtype=np.uint32))], parties=hospitals.names)
    assert masked_sum(sent, parties=hospitals.names).tolist() == [3, 3, 3]
