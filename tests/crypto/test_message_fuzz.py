"""More than ten thousand damaged messages: each is refused with a typed error, quickly, and none opens.

The generator is seeded, so a failure repeats. Every kind of message that crosses between institutions is here.
"""

import random
import time
from collections.abc import Callable

import numpy as np
import pytest

from crypto.announcement import verify_announcement
from crypto.ckks import PartyContext, PublicContext
from crypto.errors import CryptoError
from crypto.masking import mask
from crypto.sealed import seal, unseal
from crypto.vouchers import verify_voucher, vouch
from tests.crypto.federations import Federation, moment_of, period
from tests.fuzz.mutations import changed_bytes

MOMENT = moment_of(1)
Change = Callable[[bytes, random.Random], bytes]
SLOWEST_SECONDS = 5.0  # a hang, not a busy machine


def mutate(message: bytes, chance: random.Random) -> bytes:
    """One to three of the usual accidents and attacks; never the message itself."""
    damaged = message
    while damaged == message:
        damaged = changed_bytes(message, chance)
    return damaged


def flip(message: bytes, chance: random.Random) -> bytes:
    damaged = bytearray(message)
    damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def refuse_all(message: bytes, use: Callable[[bytes], object], times: int, change: Change = mutate) -> None:
    use(message)  # the undamaged message is accepted, so a refusal below is due to the damage
    chance = random.Random(20260101)
    for attempt in range(times):
        damaged = change(message, chance)
        started = time.monotonic()
        with pytest.raises(CryptoError):
            use(damaged)
        assert time.monotonic() - started < SLOWEST_SECONDS, attempt


def test_announcements(hospitals: Federation) -> None:
    refuse_all(
        hospitals.messages["oslo"],
        lambda message: verify_announcement(message, hospitals.roster, period=period()),
        times=3000,
    )


def test_vouchers(hospitals: Federation) -> None:
    message = vouch(hospitals.identities["oslo"], b"payload", party="oslo", moment=MOMENT, purpose="p")
    refuse_all(
        message, lambda message: verify_voucher(message, hospitals.roster, moment=MOMENT, purpose="p"), times=3000
    )


@pytest.mark.parametrize("size", [0, 40, 5000])
def test_sealed_boxes(hospitals: Federation, size: int) -> None:
    me = hospitals.admitted["oslo"]
    box = seal(bytes(size), key=hospitals.identities["lyon"], sender="lyon", recipient=me, purpose="p")
    refuse_all(
        box,
        lambda box: unseal(
            box,
            session=hospitals.sessions["oslo"],
            recipient=me,
            sender="lyon",
            roster=hospitals.roster,
            purpose="p",
        ),
        times=1000,
    )


def test_masked_vectors_under_their_vouchers(hospitals: Federation) -> None:
    vector = np.arange(200, dtype=np.uint64)
    masked = mask(vector, me="oslo", secrets=hospitals.secrets["oslo"], moment=MOMENT).tobytes()
    message = vouch(hospitals.identities["oslo"], masked, party="oslo", moment=MOMENT, purpose="p")
    refuse_all(
        masked,
        lambda masked: verify_voucher(message, hospitals.roster, moment=MOMENT, purpose="p").require(masked),
        times=1000,
    )


def encrypted_threes(key: PartyContext, names: tuple[str, ...]) -> dict[str, bytes]:
    return {name: key.encrypt(np.full(9, 3.0), parties=len(names)) for name in names}


@pytest.mark.parametrize("change", [mutate, flip])
def test_encrypted_contributions_under_their_vouchers(
    hospitals: Federation, ckks_key: PartyContext, change: Change
) -> None:
    """To the bit: a ciphertext has no integrity of its own, and nothing inside it could give it any."""
    sealed = ckks_key.encrypt(np.full(9, 3.0), parties=3)
    message = vouch(hospitals.identities["oslo"], sealed, party="oslo", moment=MOMENT, purpose="p")
    voucher = verify_voucher(message, hospitals.roster, moment=MOMENT, purpose="p")
    refuse_all(sealed, voucher.require, times=1500, change=change)


@pytest.mark.parametrize("change", [mutate, flip])
def test_encrypted_contributions_without_their_vouchers_open_or_are_refused_by_type(
    hospitals: Federation, ckks_key: PartyContext, change: Change
) -> None:
    """Should the check of vouchers ever be skipped, nothing but a typed error or a vector of numbers comes out."""
    names, chance = hospitals.names, random.Random(20260101)
    sent = encrypted_threes(ckks_key, names)
    for _ in range(300):
        try:
            opened = ckks_key.open({**sent, "oslo": change(sent["oslo"], chance)}.items(), length=9, parties=names)
        except CryptoError:
            continue
        assert opened.shape == (9,)


@pytest.mark.parametrize("change", [mutate, flip])
def test_contexts(hospitals: Federation, ckks_key: PartyContext, change: Change) -> None:
    names = hospitals.names
    sent = encrypted_threes(ckks_key, names)
    refuse_all(
        ckks_key.public.data,
        lambda data: PublicContext(data).add(sent.items(), length=9, parties=names),
        times=100,
        change=change,
    )
    chance = random.Random(20260101)
    for _ in range(100):  # half of a secret key serves multiplication, which is never done: damage there does no harm
        try:
            key = PartyContext(change(ckks_key.secret_bytes(), chance))
            opened = key.open(sent.items(), length=9, parties=names)
        except CryptoError:
            continue
        assert np.allclose(opened, 9.0)
