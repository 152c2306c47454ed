"""Sealed boxes and vouchers: only the intended party opens, and only what the sender signed is accepted."""

from typing import Any

import pytest

from crypto.errors import (
    CryptoError,
    DuplicateParty,
    Forged,
    Malformed,
    TooFewParties,
    UnknownIdentity,
    WrongEpoch,
    WrongParties,
    WrongPlan,
    WrongQuestion,
    WrongRound,
    WrongRun,
)
from crypto.rounds import KeyPeriod, Round
from crypto.sealed import seal, unseal
from crypto.vouchers import Voucher, verify_voucher, verify_vouchers, vouch
from tests.crypto.federations import EVERY_DIFFERENCE, NAMES, Federation, build_federation, moment_of

LETTER = b"the key of the parties"
MOMENT = moment_of(4)


def sealed_letter(hospitals: Federation, sender: str = "berlin", recipient: str = "oslo") -> bytes:
    return seal(
        LETTER,
        key=hospitals.identities[sender],
        sender=sender,
        recipient=hospitals.admitted[recipient],
        purpose="ckks key",
    )


def opened(
    hospitals: Federation, box: bytes, *, me: str = "oslo", sender: str = "berlin", purpose: str = "ckks key"
) -> bytes:
    return unseal(
        box,
        session=hospitals.sessions[me],
        recipient=hospitals.admitted[me],
        sender=sender,
        roster=hospitals.roster,
        purpose=purpose,
    )


def test_the_recipient_reads_the_letter_and_the_carrier_does_not(hospitals: Federation) -> None:
    box = sealed_letter(hospitals)
    assert LETTER not in box
    assert opened(hospitals, box) == LETTER
    assert sealed_letter(hospitals) != box  # a fresh key each time


@pytest.mark.parametrize(
    "attempt",
    [
        {"me": "lyon"},
        {"sender": "lyon"},
        {"purpose": "another purpose"},
    ],
)
def test_a_box_opens_only_as_addressed(hospitals: Federation, attempt: dict[str, str]) -> None:
    with pytest.raises(Forged):
        opened(hospitals, sealed_letter(hospitals), **attempt)


def test_a_stranger_cannot_send(hospitals: Federation) -> None:
    with pytest.raises(UnknownIdentity):
        opened(hospitals, sealed_letter(hospitals), sender="atlantis")


def test_a_box_of_an_old_epoch_stays_closed(hospitals: Federation) -> None:
    later = build_federation(hospitals.names, epoch=1)
    with pytest.raises(Forged):
        opened(later, sealed_letter(hospitals))


def test_the_right_envelope_with_the_wrong_private_key_stays_closed(hospitals: Federation) -> None:
    with pytest.raises(Forged, match="does not open"):
        unseal(
            sealed_letter(hospitals),
            session=hospitals.sessions["lyon"],
            recipient=hospitals.admitted["oslo"],
            sender="berlin",
            roster=hospitals.roster,
            purpose="ckks key",
        )


def voucher(
    hospitals: Federation,
    party: str = "oslo",
    payload: bytes = b"payload",
    moment: Round = MOMENT,
    signer: str | None = None,
) -> bytes:
    key = hospitals.identities[signer or party]
    return vouch(key, payload, party=party, moment=moment, purpose="masked vector")


def test_a_voucher_covers_one_payload_to_the_bit(hospitals: Federation) -> None:
    verified = verify_voucher(voucher(hospitals), hospitals.roster, moment=MOMENT, purpose="masked vector")
    verified.require(b"payload")
    with pytest.raises(Forged, match="oslo"):
        verified.require(b"payloae")


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"moment": moment_of(3)}, WrongRound),
        ({"moment": moment_of(5)}, WrongRound),
        ({"moment": moment_of(4, epoch=1)}, WrongEpoch),
        ({"moment": moment_of(4, run="run-2")}, WrongRun),
        ({"moment": moment_of(4, plan="plan-2")}, WrongPlan),
        ({"moment": moment_of(4, parties=("berlin", "oslo"))}, WrongParties),
        ({"moment": moment_of(4, question="question-2")}, WrongQuestion),
        ({"signer": "lyon"}, Forged),
    ],
)
def test_a_voucher_of_another_place_or_hand_is_refused(
    hospitals: Federation, change: dict[str, Any], refusal: type[CryptoError]
) -> None:
    with pytest.raises(refusal):
        verify_voucher(voucher(hospitals, **change), hospitals.roster, moment=MOMENT, purpose="masked vector")


def test_a_voucher_for_another_purpose_is_refused(hospitals: Federation) -> None:
    with pytest.raises(Malformed):
        verify_voucher(voucher(hospitals), hospitals.roster, moment=MOMENT, purpose="ciphertext")


def test_vouchers_of_exactly_the_declared_parties(hospitals: Federation) -> None:
    def attempt(parties: tuple[str, ...]) -> dict[str, Voucher]:
        return verify_vouchers(
            [voucher(hospitals, party) for party in parties],
            hospitals.roster,
            moment=MOMENT,
            purpose="masked vector",
        )

    assert set(attempt(hospitals.names)) == set(hospitals.names)
    with pytest.raises(TooFewParties):
        attempt(("berlin", "lyon"))
    with pytest.raises(DuplicateParty):
        attempt(("berlin", "lyon", "oslo", "oslo"))
    stranger = {name: key for name, key in hospitals.roster.items() if name != "oslo"}
    with pytest.raises(UnknownIdentity):
        verify_voucher(voucher(hospitals), stranger, moment=MOMENT, purpose="masked vector")


@pytest.mark.parametrize(
    ("run", "plan", "epoch", "number", "parties"),
    [
        ("", "plan", 0, 0, NAMES),
        ("run", "", 0, 0, NAMES),
        ("run", "plan", -1, 0, NAMES),
        ("run", "plan", 2**63, 0, NAMES),
        ("run", "plan", 0, -1, NAMES),
        ("run", "plan", 0, 0, NAMES[::-1]),
        ("run", "plan", 0, 0, ("oslo", "oslo")),
    ],
)
def test_a_round_without_a_place_is_refused(
    run: str, plan: str, epoch: int, number: int, parties: tuple[str, ...]
) -> None:
    with pytest.raises(CryptoError):
        Round(KeyPeriod(run, plan, epoch), parties, number, "question")


def test_a_round_survives_its_bytes_and_no_two_share_them() -> None:
    for moment in EVERY_DIFFERENCE:
        assert Round.from_bytes(moment.to_bytes()) == moment
    assert len({moment.to_bytes() for moment in EVERY_DIFFERENCE}) == len(EVERY_DIFFERENCE)


def test_a_box_under_another_plan_stays_closed(hospitals: Federation) -> None:
    other = build_federation(hospitals.names, plan="plan-2")
    with pytest.raises(Forged):
        opened(other, sealed_letter(hospitals))
