"""An aggregator that uses one approval, one charge or one run twice: each of these worked once, and is refused now."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from aggregator.sums.secure_sum import SecureSum
from fed_node.answers import AnswerStore
from fed_node.errors import NotApproved, NotReserved, RunFinished, RunOfAnotherPlan, StoreDamaged
from fed_node.ledger.ledger import Ledger
from fed_node.party import MOST_RUNS, Party
from synth.errors import ProtocolError
from synth.interface import Ask
from synth.messages import archive, wire
from synth.messages.wire import Envelope
from synth.plan import Plan
from tests.fed_node.two_parties import ROWS, RUN, CheapTraining, World, make_homes, small_plan
from tests.small import plan_of

STATISTICS = Ask(options={"phase": "statistics"})


@pytest.fixture(autouse=True)
def cheap_training() -> Iterator[None]:
    with mock.patch("synth.programme.build", CheapTraining):
        yield


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def parties_of(homes: dict[str, Path], stack: ExitStack) -> dict[str, Party]:
    parties = {name: Party(home) for name, home in homes.items()}
    for party in parties.values():
        stack.callback(party.ledger.close)
    return parties


def begun(plan: Plan, parties: dict[str, Party], run: str = RUN) -> SecureSum:
    """A run whose keys are agreed on."""
    world = World({name: party.handle for name, party in parties.items()})
    sums = SecureSum(plan, run, world)
    sums.agree_on_keys(world("hello", dict.fromkeys(sums.parties, sums.hello())).received)
    return sums


def message(plan: Plan, ask: Ask | None = None, party: str = "party-1", **options: Any) -> Envelope:
    packed = wire.pack_ask(ask) if ask else Envelope()
    return Envelope(packed.arrays, {**packed.options, "run": RUN, "plan": plan.digest(), "epoch": 0, **options})


def kinds(party: Party) -> list[str]:
    return [entry.kind for entry in party.ledger.history()]


# ── another plan for the same run ──


@pytest.mark.parametrize("mode", ["masked", "ckks"])
@pytest.mark.parametrize("forgets", ["nothing", "by junk", "by restart"])
def test_a_run_never_changes_to_a_plan_of_fewer_parties(
    tmp_path: Path, opened: ExitStack, mode: str, forgets: str
) -> None:
    """The sums of the same answers over {1, 2, 3} and {1, 2} would differ by the third party's own counts."""
    modes = {"statistics": mode, "updates": "masked"}
    family = {"name": "ctgan", "rounds": 2}
    three, two = (plan_of(family, parties=count, rows=ROWS, secure_sum=modes) for count in (3, 2))
    homes = make_homes(tmp_path, three)
    parties = parties_of(homes, opened)
    for name in ("party-1", "party-2"):
        parties[name].approve(two)
    begun(three, parties).total(STATISTICS, 0)
    pair = {name: parties[name] for name in ("party-1", "party-2")}
    announced = {}
    for name, party in pair.items():
        greeted = party.handle("hello", message(three, epoch=1))
        announced[f"announcement/{name}"] = greeted.arrays["announcement"]
    if forgets == "by junk":
        for number in range(MOST_RUNS):
            for party in pair.values():
                with pytest.raises(ProtocolError):
                    party.handle("ask", message(two, run=f"junk-{number}"))
    elif forgets == "by restart":
        for party in pair.values():
            party.ledger.close()
        pair = parties_of({name: homes[name] for name in pair}, opened)
    heads = {name: party.ledger.head for name, party in pair.items()}
    for name, party in pair.items():
        for kind in ("keys", "hello", "ask", "confirm", "open", "finish"):
            with pytest.raises(RunOfAnotherPlan):
                party.handle(kind, Envelope(announced, message(two, STATISTICS, name, epoch=1, sequence=0).options))
        assert party.ledger.head == heads[name]


def test_nothing_but_a_greeting_begins_a_run_and_what_is_refused_leaves_no_trace(
    tmp_path: Path, opened: ExitStack
) -> None:
    plan = small_plan(rounds=2)
    parties = parties_of(make_homes(tmp_path, plan), opened)
    party = parties["party-1"]
    begun(plan, parties)
    held, files = dict(party.runs), sorted(party.home.rglob("*"))
    for number in range(3 * MOST_RUNS):
        for kind in ("keys", "ask", "confirm", "open", "finish", "no-such-kind"):
            with pytest.raises(NotReserved):
                party.handle(kind, message(plan, run=f"other-{number}"))
        with pytest.raises(NotApproved):
            party.handle("hello", message(plan, run=f"other-{number}"))
    assert party.runs == held
    assert sorted(party.home.rglob("*")) == files


# ── one approval ──


def test_one_approval_gives_one_run_though_none_is_ever_finished(tmp_path: Path, opened: ExitStack) -> None:
    plan = small_plan(rounds=2)
    party = parties_of(make_homes(tmp_path, plan), opened)["party-1"]
    party.handle("hello", message(plan))
    for number in range(2, 8):
        with pytest.raises(NotApproved):
            party.handle("hello", message(plan, run=f"run-{number}"))
    party.handle("hello", message(plan))  # the first goes on
    party.approve(plan)
    party.handle("hello", message(plan, run="run-2"))
    with pytest.raises(NotApproved):
        party.handle("hello", message(plan, run="run-3"))
    assert kinds(party) == ["open", "approve", "reserve", "approve", "reserve"]


# ── one charge ──


@pytest.fixture
def answered(tmp_path: Path, opened: ExitStack) -> tuple[Plan, Party, Envelope]:
    """A party with true noise that has answered its first ask."""
    plan = small_plan(rounds=2)
    parties = parties_of(make_homes(tmp_path, plan, seed=None), opened)
    begun(plan, parties)
    ask = message(plan, STATISTICS, sequence=0)
    parties["party-1"].handle("ask", ask)
    return plan, parties["party-1"], ask


def test_an_answer_that_was_lost_is_never_made_again_with_other_noise(
    answered: tuple[Plan, Party, Envelope], opened: ExitStack
) -> None:
    plan, party, ask = answered
    for _ in range(2):
        shutil.rmtree(party.home / "answers")
        party.answers = AnswerStore(party.home / "answers")
        party.runs.clear()
        with pytest.raises(StoreDamaged, match="not stored any more"):
            party.handle("ask", ask)
        (party.home / "answers").mkdir()
    party.handle("finish", message(plan))
    shutil.rmtree(party.home / "answers")
    party.ledger.close()
    again = parties_of({"party-1": party.home}, opened)["party-1"]
    again.handle("hello", message(plan))
    with pytest.raises(RunFinished):
        again.handle("ask", ask)
    assert kinds(again) == ["open", "approve", "reserve", "charge", "answer", "finish"]


def test_an_answer_that_was_replaced_does_not_leave(answered: tuple[Plan, Party, Envelope]) -> None:
    _, party, ask = answered
    path = party.home / "answers" / RUN / "000000.answer"
    arrays, header = archive.unpack(path.read_bytes(), "it")
    path.write_bytes(archive.pack({name: array + 1 for name, array in arrays.items()}, header))
    with pytest.raises(StoreDamaged, match="not the one that the ledger knows"):
        party.handle("ask", ask)


def test_killed_between_storing_and_noting_the_stored_answer_is_noted_and_sent(
    tmp_path: Path, opened: ExitStack
) -> None:
    plan = small_plan(rounds=2)
    parties = parties_of(make_homes(tmp_path, plan, seed=None), opened)
    begun(plan, parties)
    party, ask = parties["party-1"], message(plan, STATISTICS, sequence=0)
    with mock.patch.object(Ledger, "answer", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        party.handle("ask", ask)
    path = party.home / "answers" / RUN / "000000.answer"
    stored = path.read_bytes()
    first = party.handle("ask", ask)
    assert wire.digest(party.handle("ask", ask)) == wire.digest(first)
    assert path.read_bytes() == stored
    assert kinds(party)[-2:] == ["charge", "answer"]


# ── made by the version before ──


def test_a_run_of_the_version_before_goes_on_and_one_that_it_ended_stays_ended(
    tmp_path: Path, opened: ExitStack
) -> None:
    """That version noted no answers in the ledger, no plans beside them, and the end in a file."""
    plan = small_plan(rounds=2)
    parties = parties_of(make_homes(tmp_path, plan), opened)
    begun(plan, parties)
    party, ask = parties["party-1"], message(plan, STATISTICS, sequence=0)
    with mock.patch.object(Ledger, "answer"):
        first = party.handle("ask", ask)
    path = party.home / "answers" / RUN / "000000.answer"
    arrays, header = archive.unpack(path.read_bytes(), "it")
    del header["plan"]
    path.write_bytes(archive.pack(arrays, header))
    assert wire.digest(party.handle("ask", ask)) == wire.digest(first)
    training = Ask({"state": np.zeros(4)}, {"phase": "training", "round": 0})
    party.handle("ask", message(plan, training, sequence=1))
    assert kinds(party)[3:] == ["charge", "answer", "charge", "answer"]
    (party.home / "answers" / f".finished-{RUN}").touch()
    party.ledger.close()
    again = parties_of({"party-1": party.home}, opened)["party-1"]
    assert kinds(again)[-1] == "finish"
    with pytest.raises(RunFinished):
        again.handle("ask", ask)
