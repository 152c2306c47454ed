"""A stranger with a node's key, or the aggregator, tries to fill a party's volume with messages that cost nothing."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from fed_node.consent.offers import LARGEST_OFFER_BYTES, MOST_OFFERS, OFFERED
from fed_node.guard import Refused, attempt
from fed_node.party import Party
from fed_node.process import logs
from synth import programme
from synth.messages.wire import Envelope
from synth.plan import Plan
from tests.fed_node.two_parties import CheapTraining, make_homes, small_plan

POLICY = "maximum_epsilon_per_run: 5\nmaximum_epsilon_in_total: 10\nmaximum_delta: 1.0e-5\nminimum_rows: 50\n"
KINDS = ("hello", "keys", "ask", "confirm", "open", "finish", "administrator/approve", "nonsense")
LONGEST_LINE = 10_000  # of the log, frames included
MOST_AUTOMATIC = 5


@pytest.fixture(autouse=True)
def cheap_training() -> Iterator[None]:
    with mock.patch.object(programme, "build", CheapTraining):
        yield


@pytest.fixture
def plan() -> Plan:
    return small_plan(rounds=5)


@pytest.fixture
def party(tmp_path: Path, plan: Plan) -> Iterator[Party]:
    home = make_homes(tmp_path, plan, approved=False)["party-1"]
    (home / "policy.yaml").write_text(POLICY)
    logs.log_party(home / "party.log")
    party = Party(home)
    yield party
    party.ledger.close()
    for handler in list(logging.getLogger(logs.OURS).handlers):
        logging.getLogger(logs.OURS).removeHandler(handler)
        handler.close()
    logging.getLogger(logs.OURS).propagate = True


def stored(party: Party) -> dict[str, int]:
    """Bytes by file, the log aside."""
    files = (path for path in party.home.rglob("*") if path.is_file() and not path.name.startswith("party.log"))
    return {str(path.relative_to(party.home)): path.stat().st_size for path in files}


def text_of(plan: Plan, padding: int = 0) -> str:
    return json.dumps(plan.model_dump(mode="json", by_alias=True)) + " " * padding


def say(party: Party, kind: str, **options: Any) -> str | None:
    """The refusal's code; None: answered."""
    reply = attempt(kind, lambda: party.handle(kind, Envelope({}, options)))
    return reply.code if isinstance(reply, Refused) else None


def renamed(plan: Plan, number: int) -> Plan:
    return plan.model_copy(update={"name": f"{plan.name}-{number}"})


def test_refused_messages_leave_nothing_but_lines_in_a_bounded_log(party: Party, plan: Plan) -> None:
    before, sent = stored(party), 0
    for number in range(60):
        other = renamed(plan, number)
        long = {"run": f"run-{number}", "plan": other.digest(), "plan_text": text_of(other, 900_000), "epoch": 0}
        for kind in KINDS:
            for options in (
                long,
                long | {"run": "x" * 100_000},
                long | {"run": "../../elsewhere"},
                long | {"plan": "y" * 100_000},
                {"run": f"run-{number}", "plan": plan.digest(), "epoch": 10**4000},
            ):
                assert say(party, kind, **options) is not None
                sent += 1
    left = stored(party)
    offers = [size for name, size in left.items() if name.startswith(f"{OFFERED}/")]  # for a person to look at
    assert {name: size for name, size in left.items() if not name.startswith(f"{OFFERED}/")} == before
    assert len(offers) <= MOST_OFFERS
    assert max(offers) < LARGEST_OFFER_BYTES
    written = sum(path.stat().st_size for path in party.home.glob("party.log*"))
    assert written < min(sent * LONGEST_LINE, (1 + logs.FILES_KEPT) * (logs.LARGEST_FILE_BYTES + LONGEST_LINE))


def test_a_hello_that_cannot_be_answered_reserves_nothing(party: Party, plan: Plan) -> None:
    """It used to be refused after the ledger and the folder of plans were written."""
    covering = POLICY + f"auto_approve: ['{plan.table.digest()}']\n"
    (party.home / "policy.yaml").write_text(covering)
    before = stored(party)
    for epoch in (None, -1, "0", 10**4000):
        options = {"run": "run-1", "plan": plan.digest(), "plan_text": text_of(plan), "epoch": epoch}
        assert say(party, "hello", **{name: each for name, each in options.items() if each is not None}) == "protocol"
    strangers = plan.model_dump(mode="json", by_alias=True)
    strangers["parties"].append({"name": "nobody", "rows": 60})
    stranger = Plan.model_validate(strangers)
    told = say(party, "hello", run="run-2", plan=stranger.digest(), plan_text=text_of(stranger), epoch=0)
    assert told == "peer-not-pinned"
    assert stored(party) == before


def test_many_short_runs_under_an_approving_policy_are_counted(party: Party, plan: Plan) -> None:
    """Each begins, spends nothing and ends, under a plan of another name: budget and approvals do not stop them."""
    covering = f"auto_approve: ['{plan.table.digest()}']\nmaximum_automatic_runs: {MOST_AUTOMATIC}\n"
    (party.home / "policy.yaml").write_text(POLICY + covering)

    def play(number: int) -> str | None:
        other = renamed(plan, number)
        options = {"run": f"run-{number}", "plan": other.digest(), "plan_text": text_of(other), "epoch": 0}
        told = say(party, "hello", **options)
        return told or say(party, "finish", **options)

    assert [play(number) for number in range(MOST_AUTOMATIC)] == [None] * MOST_AUTOMATIC
    full = stored(party)
    assert {play(number) for number in range(MOST_AUTOMATIC, 150)} == {"policy-refused"}
    assert stored(party) == full
    for number in range(MOST_AUTOMATIC):  # those that began may come back; it changes nothing for good
        for _ in range(20):
            play(number)
    assert sum(stored(party).values()) < sum(full.values()) + MOST_AUTOMATIC * 1_000
    party.approve(mine := renamed(plan, 999))  # and what a person approves still runs
    assert say(party, "hello", run="mine", plan=mine.digest(), epoch=0) is None


def test_what_a_policy_approved_ends_with_it_and_a_withdrawn_plan_stays_withdrawn(party: Party, plan: Plan) -> None:
    covering = POLICY + f"auto_approve: ['{plan.table.digest()}']\n"
    (party.home / "policy.yaml").write_text(covering)
    options = {"plan": plan.digest(), "plan_text": text_of(plan), "epoch": 0}
    assert say(party, "hello", run="run-1", **options) is None
    assert not list((party.home / "approved").glob("*"))
    (party.home / "policy.yaml").write_text(POLICY)
    assert say(party, "hello", run="run-1", **options) == "plan-not-approved"
    (party.home / "policy.yaml").write_text(covering)
    party.withdraw(plan.digest())
    for run in ("run-1", "run-2"):
        assert say(party, "hello", run=run, **options) == "plan-not-approved"
