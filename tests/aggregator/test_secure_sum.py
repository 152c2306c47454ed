"""Sums over real seals, without a network: what opens is the sum, whatever is lost, restarted, late or forged."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.errors import Disagreement, SumRefused
from aggregator.sums.secure_sum import SecureSum
from crypto.keys import IdentityKey
from fed_node.seal.seal import Seal
from synth.certificate.certificate import Statement
from synth.errors import FedsynthError, MissingParties, ProtocolError, Refusal
from synth.interface import Answer, Ask
from synth.messages.wire import Envelope
from synth.plan import parse_plan
from tests.aggregator.sealed_parties import (
    ASKS,
    RUN,
    STATISTICS,
    TRAINING,
    SealedParties,
    admitted,
    answer_of,
    assert_is_sum,
    plan_for,
)

SECRET_MODES = ["masked", "ckks"]
TOLERANT = {"minimum_parties": 2}
GATHER = Ask(options={"phase": "statistics"}, combine="gather")


def world_of(mode: str, folder: Path, parties: int = 3, **secure_sum: object) -> SealedParties:
    return SealedParties(plan_for(mode, parties, secure_sum=secure_sum), folder)


def kinds(world: SealedParties, after: int = 0) -> list[str]:
    return [kind.removeprefix("to ") for kind, _, _ in world.record[after:] if kind.startswith("to ")]


@settings(max_examples=25, deadline=None)
@given(
    mode=st.sampled_from(["plain", "masked", "masked", "ckks"]),
    count=st.integers(2, 5),
    data=st.data(),
)
def test_what_opens_is_the_sum_of_those_who_are_left(mode: str, count: int, data: st.DataObject) -> None:
    """Random parties, losses at random messages, restarts, lost keys: over several epochs the sum is always right."""
    minimum = data.draw(st.integers(2, count))
    with TemporaryDirectory() as folder:
        world = world_of(mode, Path(folder), count, minimum_parties=minimum, colluders=1)
        sums = admitted(world)
        for sequence in range(4):
            victim = data.draw(st.sampled_from(sums.parties))
            match data.draw(st.sampled_from(["nothing", "lost", "lost while re-keying", "restart", "no keys"])):
                case "lost" if len(sums.parties) > minimum:
                    world.lost.add(("*", victim))
                case "lost while re-keying" if len(sums.parties) > minimum + 1:
                    other = data.draw(st.sampled_from([party for party in sums.parties if party != victim]))
                    kind = data.draw(st.sampled_from(["hello", "keys"]))
                    world.lost |= {("*", victim), (kind, other)}
                case "restart":
                    world.restart(victim)
                case "no keys":
                    (world.home(victim) / "sessions" / RUN / "session").unlink()
                    world.restart(victim)
            ask = ASKS[data.draw(st.sampled_from(sorted(ASKS)))]
            assert_is_sum(sums.total(ask, sequence), sums.parties, sequence)
            assert len(sums.parties) >= minimum
            assert not {party for kind, party in world.lost if kind == "*"} & set(sums.parties)


@pytest.mark.parametrize("mode", SECRET_MODES)
def test_one_message_a_round_where_everybody_is_needed(mode: str, tmp_path: Path) -> None:
    world = world_of(mode, tmp_path)
    sums = admitted(world)
    before = len(world.record)
    sums.total(TRAINING, 0)
    expected = ["ask"] * 3 if mode == "masked" else ["ask"] * 3 + ["open"] * 2
    assert kinds(world, before) == expected


@pytest.mark.parametrize("mode", SECRET_MODES)
def test_a_lost_party_ends_the_epoch_and_the_others_send_their_answers_again(mode: str, tmp_path: Path) -> None:
    world = world_of(mode, tmp_path, **TOLERANT)
    sums = admitted(world)
    world.lost = {("ask", "party-2")}
    before = len(world.record)
    assert_is_sum(sums.total(TRAINING, 0), ["party-1", "party-3"], 0)
    assert sums.parties == ["party-1", "party-3"]
    assert sums.epoch is not None
    assert sums.epoch.number == 1
    assert kinds(world, before)[:4] == ["ask", "ask", "hello", "hello"]
    world.lost = set()
    before = len(world.record)
    assert_is_sum(sums.total(TRAINING, 1), ["party-1", "party-3"], 1)  # who comes back stays out until a resume
    assert "party-2" not in {party for _, party, _ in world.record[before:]}


@pytest.mark.parametrize("mode", ["plain", *SECRET_MODES])
def test_below_the_minimum_nothing_opens_and_the_run_goes_on_when_they_are_back(mode: str, tmp_path: Path) -> None:
    world = world_of(mode, tmp_path)
    sums = admitted(world)
    world.lost = {("ask", "party-3")}
    before = len(world.record)
    with pytest.raises(MissingParties, match="party-3"):
        sums.total(TRAINING, 0)
    assert kinds(world, before) == ["ask", "ask"]
    world.lost = set()
    assert_is_sum(sums.total(TRAINING, 0), sums.parties, 0)
    resumed = admitted(world)
    assert_is_sum(resumed.total(TRAINING, 0), sums.parties, 0)


@pytest.mark.parametrize("mode", SECRET_MODES)
def test_epochs_go_on_where_the_parties_remember_them(mode: str, tmp_path: Path) -> None:
    """One party was lost and missed some epochs; a resumed aggregator remembers none."""
    world = world_of(mode, tmp_path, **TOLERANT)
    sums = admitted(world)
    world.lost = {("*", "party-1")}
    sums.total(TRAINING, 0)
    world.lost = set()
    resumed = admitted(world)
    assert resumed.epoch is not None
    assert resumed.epoch.number == 2
    assert_is_sum(resumed.total(TRAINING, 1), ["party-1", "party-2", "party-3"], 1)


@pytest.mark.parametrize("mode", SECRET_MODES)
def test_an_aggregator_that_invents_a_loss_cannot_subtract_two_sums(mode: str, tmp_path: Path) -> None:
    """It has the sum of all three, claims that one was lost, and asks the others for the same numbers again."""
    world = world_of(mode, tmp_path, **TOLERANT)
    sums = admitted(world)
    assert_is_sum(sums.total(TRAINING, 0), sums.parties, 0)
    world.lost = {("ask", "party-2")}
    with pytest.raises(Refusal) as refused:
        sums.total(TRAINING, 0)
    assert refused.value.code == "already-confirmed"
    world.lost = set()
    resumed = admitted(world)  # with everybody on the list again, the same sum is given again
    assert_is_sum(resumed.total(TRAINING, 0), ["party-1", "party-2", "party-3"], 0)


@pytest.mark.parametrize("mode", SECRET_MODES)
def test_a_sum_that_was_confirmed_by_some_waits_for_the_rest(mode: str, tmp_path: Path) -> None:
    world = world_of(mode, tmp_path, **TOLERANT)
    sums = admitted(world)
    world.lost = {("confirm", "party-2")}
    with pytest.raises(MissingParties, match="party-2"):
        sums.total(TRAINING, 0)
    world.lost = set()
    assert_is_sum(sums.total(TRAINING, 0), ["party-1", "party-2", "party-3"], 0)


def test_a_late_message_of_an_old_epoch_is_refused(tmp_path: Path) -> None:
    world = world_of("masked", tmp_path, **TOLERANT)
    sums = admitted(world)
    sums.total(TRAINING, 0)
    late = next(reply for kind, party, reply in world.record if (kind, party) == ("from ask", "party-1"))
    world.lost = {("*", "party-3")}
    sums.total(TRAINING, 1)
    world.incoming = lambda kind, party, reply: late if (kind, party) == ("ask", "party-1") else reply
    with pytest.raises(SumRefused) as refused:
        sums.total(TRAINING, 2)
    assert refused.value.code == "crypto.misplaced.wrong-epoch"
    world.incoming = lambda kind, party, reply: reply
    assert_is_sum(sums.total(TRAINING, 2), ["party-1", "party-2"], 2)


def replayed(world: SealedParties) -> Callable[[str, str, Envelope], Envelope]:
    old = {party: reply for kind, party, reply in world.record if kind == "from ask"}
    return lambda kind, party, reply: old[party] if kind == "ask" else reply


@pytest.mark.parametrize("mode", ["plain", *SECRET_MODES])
def test_replayed_and_swapped_answers_are_refused(mode: str, tmp_path: Path) -> None:
    world = world_of(mode, tmp_path)
    sums = admitted(world)
    sums.total(TRAINING, 0)
    world.incoming = replayed(world)
    with pytest.raises(SumRefused) as refused:
        sums.total(TRAINING, 1)
    assert refused.value.code == "crypto.misplaced.wrong-round"
    first: dict[str, Envelope] = {}  # everybody says what the first said
    world.incoming = lambda kind, party, reply: first.setdefault(kind, reply) if kind == "ask" else reply
    with pytest.raises(Disagreement, match="another party"):
        sums.total(TRAINING, 1)
    world.incoming = lambda kind, party, reply: reply
    assert_is_sum(sums.total(TRAINING, 1), sums.parties, 1)


@pytest.mark.parametrize("mode", ["plain", *SECRET_MODES])
def test_answers_of_different_shapes_are_refused(mode: str, tmp_path: Path) -> None:
    def other(party: str, sequence: int) -> Answer:
        answer = answer_of(party, sequence)
        return Answer(answer.arrays | {"extra": np.zeros(1)}, 1.0) if party == "party-2" else answer

    world = world_of(mode, tmp_path)
    world.answers = other
    with pytest.raises(Disagreement, match="different arrays"):
        admitted(world).total(TRAINING, 0)


@pytest.mark.parametrize("broken", [Answer({"x": np.array([np.nan])}, 1.0), Answer({"x": np.ones(1)}, float("inf"))])
def test_plain_answers_must_be_finite(broken: Answer, tmp_path: Path) -> None:
    world = world_of("plain", tmp_path)
    world.answers = lambda party, sequence: broken
    with pytest.raises(ProtocolError, match="finite"):
        admitted(world).total(TRAINING, 0)


def test_gathered_answers_come_by_party(tmp_path: Path) -> None:
    world = world_of("ckks", tmp_path)
    gathered = admitted(world).total(GATHER, 0)
    assert sorted(gathered.by_party) == ["party-1", "party-2", "party-3"]
    for party, answer in gathered.by_party.items():
        expected = answer_of(party, 0)
        assert answer.weight == expected.weight
        assert all(np.array_equal(answer.arrays[name], array) for name, array in expected.arrays.items())


def test_a_lying_opener_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of("ckks", tmp_path)
    sums = admitted(world)
    honest = Seal.open

    def lying(seal: Seal, envelope: Envelope) -> Envelope:
        with monkeypatch.context() as inner:
            if seal.credentials.party == "party-2":
                inner.setattr("fed_node.seal.numbers.opened", lambda *_: (np.ones(26, np.int64), np.ones(20)))
            return honest(seal, envelope)

    with monkeypatch.context() as patch:
        patch.setattr(Seal, "open", lying)
        with pytest.raises(Disagreement, match="different sums"):
            sums.total(STATISTICS, 0)
    assert_is_sum(sums.total(STATISTICS, 0), sums.parties, 0)


def test_two_openers_are_enough_and_one_is_not(tmp_path: Path) -> None:
    world = world_of("ckks", tmp_path)
    sums = admitted(world)
    world.lost = {("open", "party-1")}
    before = len(world.record)
    assert_is_sum(sums.total(STATISTICS, 0), sums.parties, 0)
    assert [party for kind, party, _ in world.record[before:] if kind == "to open"] == ["party-2", "party-3"]
    world.lost = {("open", "party-1"), ("open", "party-2")}
    with pytest.raises(MissingParties):
        sums.total(TRAINING, 1)
    world.lost = set()
    assert_is_sum(sums.total(TRAINING, 1), sums.parties, 1)


@pytest.mark.parametrize("mode", SECRET_MODES)
def test_a_party_that_lost_its_keys_makes_everybody_agree_on_new_ones(mode: str, tmp_path: Path) -> None:
    world = world_of(mode, tmp_path)
    sums = admitted(world)
    sums.total(STATISTICS, 0)
    shutil.rmtree(world.home("party-1") / "sessions")
    world.restart("party-1")
    assert_is_sum(sums.total(TRAINING, 1), sums.parties, 1)
    assert sums.epoch is not None
    assert sums.epoch.number == 1


def test_a_party_that_never_keeps_keys_stops_the_run_and_not_the_clock(tmp_path: Path) -> None:
    world = world_of("masked", tmp_path)
    sums = admitted(world)

    def forget(kind: str, party: str, envelope: Envelope) -> Envelope:
        if kind == "ask":
            world.seals[party].sessions.retire()
        return envelope

    world.outgoing = forget
    with pytest.raises(ProtocolError, match="keys faster"):
        sums.total(TRAINING, 0)


def test_refusals_that_new_keys_cannot_cure_reach_the_operator(tmp_path: Path) -> None:
    world = world_of("masked", tmp_path)
    sums = admitted(world)
    world.answers = lambda party, sequence: Answer({"x": np.array([1e9])}, 1.0)
    with pytest.raises(Refusal) as refused:
        sums.total(TRAINING, 0)
    assert refused.value.code == "answer-out-of-range"
    assert sums.epoch is not None
    assert sums.epoch.number == 0


def test_an_identity_that_changes_or_is_not_on_the_roster_is_refused(tmp_path: Path) -> None:
    world = world_of("masked", tmp_path)
    roster = {name: IdentityKey.generate().identity for name in world.seals}
    sums = SecureSum(world.plan, RUN, world, roster)
    with pytest.raises(ProtocolError, match="another identity"):
        sums.agree_on_keys(world("hello", dict.fromkeys(sums.parties, sums.hello())).received)


def test_hello_carries_the_very_plan_that_its_digest_names(tmp_path: Path) -> None:
    world = world_of("ckks", tmp_path)
    hello = SecureSum(world.plan, RUN, world).hello()
    assert parse_plan(json.loads(str(hello.options["plan_text"]))).digest() == hello.options["plan"]


def statement_of(world: SealedParties, sender: str, **changes: object) -> str:
    statement = Statement(
        party=sender,
        run=RUN,
        plan_digest=world.plan.digest(),
        schema_digest="0",
        code_version="1",
        events=[],
        ledger_head="0",
        seeded=False,
    )
    return json.dumps(statement.model_dump() | changes)


def test_statements_are_collected_signed_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of("masked", tmp_path)
    sums = admitted(world)
    signed = Seal.signed
    changes: dict[str, object] = {}

    def stating(seal: Seal, text: str) -> Envelope:
        return signed(seal, statement_of(world, seal.credentials.party, **changes))

    monkeypatch.setattr(Seal, "signed", stating)
    statements = sums.finish()
    assert [each.statement.party for each in statements] == ["party-1", "party-2", "party-3"]
    assert all(each.signature for each in statements)
    for change in ({"run": "run-2"}, {"plan_digest": "0"}, {"party": "party-9"}):
        changes = dict(change)
        with pytest.raises(Disagreement, match="another party, run or plan"):
            sums.finish()
    changes = {}
    world.incoming = lambda kind, party, reply: Envelope({}, reply.options | {"statement": "{}"})
    with pytest.raises(FedsynthError):
        sums.finish()
    world.incoming = lambda kind, party, reply: Envelope(
        {}, reply.options | {"statement": statement_of(world, party) + " "}
    )
    with pytest.raises(SumRefused) as refused:
        sums.finish()
    assert refused.value.code == "crypto.forged"
