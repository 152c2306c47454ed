"""One party's seal against everybody else: what it checks before it takes part, and what it never does twice."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crypto.announcement import announce
from crypto.keys import Identity, IdentityKey, SessionKey
from crypto.rounds import KeyPeriod
from fed_node.answers import RUN_NAME
from fed_node.errors import (
    AlreadyConfirmed,
    AnswerOutOfRange,
    NoSession,
    NotSealed,
    PeerNotPinned,
    SecondVector,
    StoreDamaged,
    SumRefused,
)
from fed_node.seal.seal import Seal
from synth.errors import ProtocolError
from synth.interface import Answer
from synth.messages.fields import as_array, as_arrays, blob
from synth.messages.sums import count_limit
from synth.messages.wire import Envelope
from tests.aggregator.sealed_parties import (
    RUN,
    STATISTICS,
    TRAINING,
    Remembered,
    SealedParties,
    admitted,
    answer_of,
    assert_is_sum,
    plan_for,
)

ME = "party-2"


@pytest.fixture
def world(tmp_path: Path) -> SealedParties:
    return SealedParties(plan_for("masked"), tmp_path)


def greetings(world: SealedParties, epoch: int = 0) -> dict[str, bytes]:
    hello = Envelope({}, {"epoch": epoch})
    return {name: blob(seal.hello(hello), "announcement") for name, seal in world.seals.items()}


def keys_message(announcements: dict[str, bytes], epoch: int = 0) -> Envelope:
    return Envelope(as_arrays("announcement", announcements), {"epoch": epoch})


def ask_message(epoch: int = 0, sequence: int = 0) -> Envelope:
    return Envelope({}, {"epoch": epoch, "sequence": sequence})


def signed_by(key: IdentityKey, party: str) -> bytes:
    period = KeyPeriod(RUN, plan_for("masked").digest(), 0)
    return announce(key, SessionKey.generate(), period=period, party=party)


def test_a_party_that_knows_not_everybody_takes_no_part(world: SealedParties, tmp_path: Path) -> None:
    pins = {name: pin for name, pin in world.pins.items() if name != "party-3"}
    with pytest.raises(PeerNotPinned, match="party-3"):
        Seal(world.plan, ME, RUN, tmp_path / ME, pins, Remembered()).hello(Envelope({}, {"epoch": 0}))


def test_without_secret_sums_nobody_needs_to_be_known(tmp_path: Path) -> None:
    world = SealedParties(plan_for("plain", parties=1, secure_sum={"colluders": 0}), tmp_path)
    Seal(world.plan, "party-1", RUN, tmp_path / "party-1", {}, Remembered()).hello(Envelope({}, {"epoch": 0}))


def test_a_swapped_key_is_detected(world: SealedParties) -> None:
    """The aggregator puts a key of its own in another party's place."""
    sent = greetings(world) | {"party-3": signed_by(IdentityKey.generate(), "party-3")}
    with pytest.raises(SumRefused) as refused:
        world.seals[ME].keys(keys_message(sent))
    assert refused.value.code == "crypto.forged"


def test_an_invented_party_is_detected(world: SealedParties) -> None:
    sent = greetings(world) | {"party-4": signed_by(IdentityKey.generate(), "party-4")}
    with pytest.raises(SumRefused) as refused:
        world.seals[ME].keys(keys_message(sent))
    assert refused.value.code == "crypto.participation.unknown-identity"


def test_an_invented_party_in_place_of_a_real_one_is_detected(world: SealedParties) -> None:
    sent = greetings(world)
    sent["party-4"] = signed_by(IdentityKey.generate(), "party-4")
    del sent["party-3"]
    with pytest.raises(SumRefused):
        world.seals[ME].keys(keys_message(sent))


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda sent, world: sent.pop("party-3"), "crypto.participation.too-few-parties"),
        (lambda sent, world: sent.update({"party-3": sent["party-1"]}), "crypto.participation.duplicate-party"),
        (lambda sent, world: sent.update({"x": sent.pop("party-3")}), "crypto.participation.unknown-identity"),
        (lambda sent, world: sent.update(greetings(world, epoch=5)), "crypto.misplaced.wrong-epoch"),
        (lambda sent, world: sent.update({"party-3": sent["party-3"][:-1]}), "crypto.malformed"),
    ],
)
def test_other_lists_are_refused_and_the_proper_one_still_works(world: SealedParties, change: Any, code: str) -> None:
    sent = greetings(world)
    broken = dict(sent)
    kept = {name: seal.sessions.offered(0) for name, seal in world.seals.items()}
    change(broken, world)
    for name, seal in world.seals.items():  # the hello that made a broken list may have replaced the offers
        seal.sessions._write("offer", {"epoch": 0, "key": kept[name].to_bytes().hex()})
    with pytest.raises(SumRefused) as refused:
        world.seals[ME].keys(keys_message(broken))
    assert refused.value.code == code
    with pytest.raises(NoSession):
        world.seals[ME].sequence(ask_message())
    world.seals[ME].keys(keys_message(sent))
    assert world.seals[ME].sequence(ask_message()) == 0


def test_a_key_of_the_partys_own_that_it_did_not_make_is_detected(world: SealedParties) -> None:
    """Even a replay of its own, older announcement."""
    old = greetings(world)
    new = greetings(world)
    with pytest.raises(SumRefused) as refused:
        world.seals[ME].keys(keys_message(new | {ME: old[ME]}))
    assert refused.value.code == "crypto.forged"


def test_messages_of_another_epoch_are_refused(world: SealedParties) -> None:
    admitted(world)
    for epoch in (1, 7):
        with pytest.raises(SumRefused) as refused:
            world.seals[ME].sequence(ask_message(epoch=epoch))
        assert refused.value.code == "crypto.misplaced.wrong-epoch"
    for broken in (
        Envelope(),
        Envelope({}, {"epoch": "0", "sequence": 0}),
        Envelope({}, {"epoch": 0, "sequence": True}),
    ):
        with pytest.raises(ProtocolError):
            world.seals[ME].sequence(broken)


def test_epochs_never_repeat_even_if_the_aggregator_forgets(world: SealedParties) -> None:
    admitted(world)
    world.restart(ME)
    assert world.seals[ME].hello(Envelope({}, {"epoch": 0})).options["epoch"] == 1
    assert world.seals[ME].hello(Envelope({}, {"epoch": 6})).options["epoch"] == 6


def test_an_offer_that_outlived_its_epoch_begins_no_second_one(world: SealedParties) -> None:
    """The party was killed after it wrote the session and before it removed the offer."""
    sent = greetings(world)
    offer = world.home(ME) / "sessions" / RUN / "offer"
    kept = offer.read_bytes()
    world.seals[ME].keys(keys_message(sent))
    offer.write_bytes(kept)
    world.restart(ME)
    with pytest.raises(NoSession):
        world.seals[ME].keys(keys_message(sent))


def test_one_mask_never_covers_two_vectors_even_after_a_restart(world: SealedParties) -> None:
    admitted(world)
    first = world.seals[ME].seal(answer_of(ME, 0), TRAINING, ask_message())
    world.restart(ME)
    again = world.seals[ME].seal(answer_of(ME, 0), TRAINING, ask_message())
    assert blob(first, "sealed") == blob(again, "sealed")
    with pytest.raises(SecondVector):
        world.seals[ME].seal(answer_of(ME, 1), TRAINING, ask_message())
    world.seals[ME].seal(answer_of(ME, 1), TRAINING, ask_message(sequence=1))


def test_keys_survive_a_restart_and_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    world = SealedParties(plan_for("ckks"), tmp_path)
    sums = admitted(world)
    for name in world.seals:
        world.restart(name)
        session = world.home(name) / "sessions" / RUN / "session"
        assert stat.S_IMODE(session.stat().st_mode) == 0o600
        assert stat.S_IMODE(session.parent.stat().st_mode) == 0o700
        assert not (session.parent / "offer").exists()
    assert_is_sum(sums.total(STATISTICS, 0), sums.parties, 0)
    assert sums.epoch is not None
    assert sums.epoch.number == 0


def test_damaged_keys_are_no_keys_but_a_damaged_journal_stops_the_party(world: SealedParties) -> None:
    admitted(world)
    folder = world.home(ME) / "sessions" / RUN
    world.seals[ME].seal(answer_of(ME, 0), TRAINING, ask_message())
    (folder / "session").write_bytes(b"rubbish")
    world.restart(ME)
    with pytest.raises(NoSession):
        world.seals[ME].sequence(ask_message())
    (folder / "journal.json").write_bytes(b"{")
    with pytest.raises(StoreDamaged):
        world.restart(ME)


@pytest.mark.parametrize("mode", ["masked", "ckks"])
@pytest.mark.parametrize(
    "broken",
    [
        {"weights/a": np.array([1.0, np.nan])},
        {"weights/a": np.array([np.inf])},
        {"weights/a": np.array([2000.25])},
    ],
)
def test_reals_that_do_not_fit_are_refused_by_name_without_a_value(tmp_path: Path, mode: str, broken: Any) -> None:
    world = SealedParties(plan_for(mode), tmp_path)
    sums = admitted(world)
    with pytest.raises(AnswerOutOfRange, match="'weights/a'") as refused:
        world.seals[ME].seal(Answer(broken, 1.0), TRAINING, ask_message())
    assert "2000" not in str(refused.value)
    with pytest.raises(AnswerOutOfRange, match="weight"):
        world.seals[ME].seal(Answer({"x": np.zeros(2)}, float("nan")), TRAINING, ask_message())
    with pytest.raises(ProtocolError, match="'x'"):
        world.seals[ME].seal(Answer({"x": np.array(["text"])}, 1.0), TRAINING, ask_message())
    assert_is_sum(sums.total(TRAINING, 0), sums.parties, 0)


@pytest.mark.parametrize("mode", ["masked", "ckks"])
def test_counts_that_do_not_fit_are_cut_and_nobody_is_told(tmp_path: Path, mode: str) -> None:
    """A refusal would say, uncharged, that one party's noisy count lies beyond a limit the aggregator chose."""
    world = SealedParties(plan_for(mode), tmp_path)
    sums, limit = admitted(world), count_limit(world.plan)
    most, least = np.array([limit, 10**15, 7]), np.array([-(10**15), 5, np.iinfo(np.int64).min])
    unsigned = np.array([3, 2**63], dtype=np.uint64)
    world.answers = lambda party, sequence: Answer({"most": most, "least": least, "unsigned": unsigned}, 1.0)
    total = sums.total(TRAINING, 0)
    assert total.arrays["most"].tolist() == [3 * limit, 3 * limit, 21]
    assert total.arrays["least"].tolist() == [-3 * limit, 15, -3 * limit]
    assert total.arrays["unsigned"].tolist() == [9, 3 * limit]


def test_only_what_was_sealed_last_can_be_confirmed_or_opened(tmp_path: Path) -> None:
    world = SealedParties(plan_for("masked", secure_sum={"minimum_parties": 2}), tmp_path)
    sums = admitted(world)
    for step in (world.seals[ME].confirm, world.seals[ME].open):
        with pytest.raises(NotSealed):
            step(ask_message())
    sums.total(TRAINING, 0)
    with pytest.raises(NotSealed):  # masked: there is nothing to open
        world.seals[ME].open(ask_message())


def test_an_answer_confirmed_for_one_list_is_not_given_to_another_even_after_a_restart(tmp_path: Path) -> None:
    world = SealedParties(plan_for("masked", secure_sum={"minimum_parties": 2}), tmp_path)
    sums = admitted(world)
    sums.total(TRAINING, 0)
    world.lost = {("*", "party-1")}
    sums.total(TRAINING, 1)
    world.restart(ME)
    with pytest.raises(AlreadyConfirmed):
        world.seals[ME].seal(answer_of(ME, 0), TRAINING, ask_message(epoch=1, sequence=0))


@pytest.mark.parametrize("mode", ["masked", "ckks"])
def test_counts_without_an_own_mask_are_bound_to_the_list_they_leave_for(mode: str, tmp_path: Path) -> None:
    """Nobody confirmed anything, and nothing was opened: another list is refused all the same, after a restart too."""
    world = SealedParties(plan_for(mode), tmp_path)
    admitted(world)
    world.seals[ME].seal(answer_of(ME, 0), TRAINING, ask_message())
    world.restart(ME)
    seal = world.seals[ME]
    session = seal.sessions.current
    fewer = {party: key for party, key in session.public_keys.items() if party != "party-3"}
    seal.sessions.begin(replace(session, period=seal.sessions.period(1), public_keys=fewer))
    with pytest.raises(AlreadyConfirmed):
        seal.seal(answer_of(ME, 0), TRAINING, ask_message(epoch=1))
    with pytest.raises(NotSealed):
        seal.confirm(ask_message(epoch=1))


def test_the_last_word_is_signed_and_forgets_the_keys(tmp_path: Path) -> None:
    world = SealedParties(plan_for("ckks"), tmp_path)
    admitted(world)
    secret = world.seals[ME].sessions.current.context
    assert secret is not None
    signed = world.seals[ME].signed("Gößner")
    identity = Identity(bytes.fromhex(str(signed.options["public_key"])))
    assert identity.to_text() == world.pins[ME]
    identity.verify(bytes.fromhex(str(signed.options["signature"])), "Gößner".encode())
    for path in (world.home(ME) / "sessions").rglob("*"):
        assert path.is_dir() or secret.secret_bytes()[:1000] not in path.read_bytes()
    world.restart(ME)
    with pytest.raises(NoSession):
        world.seals[ME].sequence(ask_message())
    assert world.seals[ME].hello(Envelope({}, {"epoch": 0})).options["epoch"] == 1


def test_a_run_whose_name_is_a_path_is_refused(world: SealedParties, tmp_path: Path) -> None:
    assert RUN_NAME.fullmatch(RUN)
    with pytest.raises(ProtocolError):
        Seal(world.plan, ME, "../../etc", tmp_path / ME, world.pins, Remembered())


def test_a_missing_identity_key_is_named(world: SealedParties, tmp_path: Path) -> None:
    (tmp_path / ME / "identity.key").unlink()
    world.restart(ME)
    with pytest.raises(StoreDamaged, match="identity key"):
        world.seals[ME].hello(Envelope({}, {"epoch": 0}))


def test_the_ckks_key_must_come_from_the_first_party_by_name(tmp_path: Path) -> None:
    """A letter that another party wrote, or that was meant for another, is refused."""
    world = SealedParties(plan_for("ckks"), tmp_path)
    sent = greetings(world)
    made = world.seals["party-1"].keys(keys_message(sent))
    for box in (blob(made, "key/for/party-3"), b"", blob(made, "key/for/party-2")[:-1]):
        message = keys_message(sent)
        with pytest.raises(SumRefused):
            world.seals[ME].keys(Envelope(message.arrays | {"box": as_array(box)}, message.options))
    with pytest.raises(ProtocolError, match="box"):
        world.seals[ME].keys(keys_message(sent))
