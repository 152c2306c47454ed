"""Identities, sessions and admission: an aggregator that invents, swaps, repeats or omits a party is caught."""

import re
from collections.abc import Callable

import pytest

from crypto.announcement import Announcement, admit, announce, verify_announcement
from crypto.errors import (
    CryptoError,
    DuplicateParty,
    Forged,
    Malformed,
    OutOfRange,
    TooFewParties,
    UnknownIdentity,
    WrongEpoch,
    WrongPlan,
    WrongRun,
)
from crypto.keys import Identity, IdentityKey, SessionKey
from crypto.pairing import pair_secrets
from tests.crypto.federations import Federation, build_federation, period


def every_error(kind: type[CryptoError] = CryptoError) -> list[type[CryptoError]]:
    return [kind, *(leaf for child in kind.__subclasses__() for leaf in every_error(child))]


def test_codes_are_distinct_and_follow_the_tree() -> None:
    errors = every_error()
    assert len({error.code for error in errors}) == len(errors)
    for error in errors[1:]:
        parent = error.__mro__[1]
        assert issubclass(parent, CryptoError)
        assert error.code.startswith(parent.code + ".")


def test_identity_survives_pem_bytes_and_text() -> None:
    key = IdentityKey.generate()
    assert IdentityKey.from_pem(key.to_pem()).identity == key.identity
    assert IdentityKey.from_bytes(key.to_bytes()).identity == key.identity
    assert Identity.from_text(key.identity.to_text()) == key.identity


def test_fingerprint_can_be_read_aloud_and_tells_keys_apart() -> None:
    first, second = IdentityKey.generate().identity, IdentityKey.generate().identity
    assert re.fullmatch(r"([A-Z2-7]{4} ){7}[A-Z2-7]{4}", first.fingerprint())
    assert first.fingerprint() != second.fingerprint()


def test_private_keys_do_not_show_in_representations(hospitals: Federation) -> None:
    for secret in (hospitals.identities["oslo"], hospitals.sessions["oslo"], hospitals.secrets["oslo"]["lyon"]):
        assert "private" not in repr(secret).lower()
        assert "secret=" not in repr(secret)


@pytest.mark.parametrize(
    "load",
    [
        lambda: IdentityKey.from_pem(b"not a key"),
        lambda: IdentityKey.from_bytes(b"short"),
        lambda: SessionKey.from_bytes(b"short"),
        lambda: Identity(b"short"),
        lambda: Identity.from_text("rsa:AAAA"),
        lambda: Identity.from_text("ed25519:?"),
        lambda: SessionKey.generate().agree(bytes(32)),  # the point of order one
        lambda: SessionKey.generate().agree(b"short"),
    ],
)
def test_damaged_keys_are_refused(load: Callable[[], object]) -> None:
    with pytest.raises(Malformed):
        load()


def test_a_key_of_another_kind_is_refused() -> None:
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    pem = X25519PrivateKey.generate().private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    with pytest.raises(Malformed, match="Ed25519"):
        IdentityKey.from_pem(pem)


def test_both_sides_of_a_pair_agree_and_pairs_differ(hospitals: Federation) -> None:
    secrets = hospitals.secrets
    assert secrets["berlin"]["oslo"] == secrets["oslo"]["berlin"]
    assert len({secret.secret for mine in secrets.values() for secret in mine.values()}) == 3


def test_run_plan_epoch_and_session_key_all_change_the_secret(hospitals: Federation) -> None:
    def secret(federation: Federation) -> bytes:
        return federation.secrets["berlin"]["oslo"].secret

    first = secret(hospitals)
    assert secret(build_federation(hospitals.names, run="run-2")) != first
    assert secret(build_federation(hospitals.names, epoch=1)) != first
    assert secret(build_federation(hospitals.names, plan="plan-2")) != first


def test_an_invented_party_is_refused(hospitals: Federation) -> None:
    forged = announce(IdentityKey.generate(), SessionKey.generate(), period=period(), party="atlantis")
    with pytest.raises(UnknownIdentity):
        verify_announcement(forged, hospitals.roster, period=period())


def test_a_swapped_session_key_is_refused(hospitals: Federation) -> None:
    forged = announce(IdentityKey.generate(), SessionKey.generate(), period=period(), party="oslo")
    with pytest.raises(Forged):
        verify_announcement(forged, hospitals.roster, period=period())


def test_a_party_swapped_under_my_own_name_is_noticed(hospitals: Federation) -> None:
    with pytest.raises(Forged, match="not mine"):
        pair_secrets(SessionKey.generate(), "oslo", hospitals.admitted)


def test_pairing_without_being_admitted_is_refused(hospitals: Federation) -> None:
    with pytest.raises(UnknownIdentity):
        pair_secrets(SessionKey.generate(), "atlantis", hospitals.admitted)


def test_announcements_of_another_run_plan_or_epoch_are_refused(hospitals: Federation) -> None:
    message = hospitals.messages["oslo"]
    with pytest.raises(WrongRun):
        verify_announcement(message, hospitals.roster, period=period("run-2"))
    with pytest.raises(WrongPlan):
        verify_announcement(message, hospitals.roster, period=period(plan="plan-2"))
    with pytest.raises(WrongEpoch):
        verify_announcement(message, hospitals.roster, period=period(epoch=1))


def test_admission_needs_exactly_the_declared_parties(hospitals: Federation) -> None:
    def attempt(
        messages: list[bytes], declared: tuple[str, ...] = hospitals.names, minimum: int = 2
    ) -> dict[str, Announcement]:
        return admit(messages, hospitals.roster, period=period(), declared=declared, minimum=minimum)

    berlin, lyon, oslo = (hospitals.messages[name] for name in ("berlin", "lyon", "oslo"))
    assert list(attempt([oslo, berlin, lyon])) == ["berlin", "lyon", "oslo"]
    with pytest.raises(TooFewParties, match="oslo"):
        attempt([berlin, lyon])
    with pytest.raises(DuplicateParty):
        attempt([berlin, lyon, lyon])
    with pytest.raises(UnknownIdentity):
        attempt([berlin, lyon, oslo], declared=("berlin", "lyon"))
    with pytest.raises(TooFewParties):
        attempt([berlin, lyon, oslo], minimum=4)
    with pytest.raises(TooFewParties):
        attempt([berlin], declared=("berlin",), minimum=1)
    with pytest.raises(DuplicateParty):
        attempt([berlin, lyon], declared=("berlin", "berlin"))


def test_two_parties_with_one_session_key_are_refused(hospitals: Federation) -> None:
    copied = announce(hospitals.identities["oslo"], hospitals.sessions["lyon"], period=period(), party="oslo")
    messages = [hospitals.messages["berlin"], hospitals.messages["lyon"], copied]
    with pytest.raises(DuplicateParty, match="same session key"):
        admit(messages, hospitals.roster, period=period(), declared=hospitals.names)


def test_a_negative_epoch_is_refused(hospitals: Federation) -> None:
    with pytest.raises(OutOfRange):
        announce(hospitals.identities["oslo"], hospitals.sessions["oslo"], period=period(epoch=-1), party="oslo")
