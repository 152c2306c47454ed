"""What an administrator decides holds at once: with a worker running or not, in the middle of a run or before it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from aggregator.sums.secure_sum import SecureSum
from fed_node.consent import administration
from fed_node.consent.approvals import Approvals
from fed_node.errors import NotApproved, StoreInUse
from fed_node.ledger.ledger import Ledger, LedgerView
from fed_node.party import Party
from fed_node.process.client_app import KINDS
from fed_node.process.frames import Request
from fed_node.process.worker import ADMINISTRATION_SOCKET, Worker
from fed_node.process.worker_client import WorkerRefused, ask_worker
from synth import programme
from synth.errors import BudgetError, InputError, Refusal
from synth.interface import Ask
from synth.messages.wire import Envelope
from synth.plan import Plan
from synth.privacy.lifetime import compose_adaptively
from tests.fed_node.two_parties import RUN, CheapTraining, World, make_homes, run_all, small_plan

POLICY = "maximum_epsilon_per_run: 5\nmaximum_epsilon_in_total: 10\nmaximum_delta: 1.0e-5\nminimum_rows: 50\n"
STATISTICS = Ask(options={"phase": "statistics"})


@pytest.fixture(autouse=True)
def cheap_training() -> Iterator[None]:
    with mock.patch.object(programme, "build", CheapTraining):
        yield


@pytest.fixture
def plan() -> Plan:
    return small_plan(rounds=5)


@pytest.fixture
def homes(tmp_path: Path, plan: Plan) -> dict[str, Path]:
    homes = make_homes(tmp_path, plan, approved=False)
    for home in homes.values():
        (home / "policy.yaml").write_text(POLICY)
    return homes


def hello(plan: Plan, run: str = RUN, **options: Any) -> Envelope:
    return Envelope({}, {"run": run, "plan": plan.digest(), "epoch": 0, **options})


def cheap_plan(rounds: int) -> Plan:
    """Declared at ε = 0.1, so that the budget can be set to what two plans cost, and not the policy's other limits."""
    return small_plan(rounds=rounds, privacy={"epsilon": 0.1, "delta": 1e-5})


def between(one: Plan, both: list[Plan]) -> float:
    """A lifetime ε that pays for one plan and not for all."""
    costs = [[e for plan in plans for e in programme.whole_cost(plan, "party-1")] for plans in ([one], both)]
    less, more = (compose_adaptively(events, 1e-5).epsilon for events in costs)
    assert 0.1 < less < more
    return (less + more) / 2


def kinds(home: Path) -> list[str]:
    with closing(LedgerView(home / "ledger.sqlite")) as view:
        return [entry.kind for entry in view.history()]


def test_an_approval_is_for_one_run_and_pays_for_it(homes: dict[str, Path], plan: Plan) -> None:
    home = homes["party-1"]
    for each in homes.values():
        administration.approve(each, plan)
    assert kinds(home) == ["open", "approve"]
    parties = {name: Party(each) for name, each in homes.items()}
    world = World({name: party.handle for name, party in parties.items()})
    run_all(plan, world)
    charges = plan.family.asks + 1
    assert kinds(home) == ["open", "approve", "reserve", *["charge", "answer"] * charges, "finish"]
    with pytest.raises(NotApproved, match="approve PLAN` again"):
        parties["party-1"].handle("hello", hello(plan, "run-2"))
    parties["party-1"].handle("hello", hello(plan, RUN))  # an aggregator that was killed before it published
    parties["party-1"].approve(plan)
    parties["party-1"].handle("hello", hello(plan, "run-2"))
    assert kinds(home)[-2:] == ["approve", "reserve"]
    for party in parties.values():
        party.ledger.close()


def test_an_approval_that_the_budget_cannot_pay_is_none(homes: dict[str, Path]) -> None:
    home, plan, other = homes["party-1"], cheap_plan(5), cheap_plan(4)
    budget = between(plan, [plan, other])
    (home / "policy.yaml").write_text(POLICY.replace("in_total: 10", f"in_total: {budget}"))
    administration.approve(home, plan)
    with pytest.raises(BudgetError, match=f"budget is {budget:g}"):
        administration.approve(home, other)
    with closing(LedgerView(home / "ledger.sqlite")) as ledger:
        assert [each.plan_digest for each in ledger.reservations()] == [plan.digest()]
    assert not (home / "approved" / f"{other.digest()}.json").exists()
    administration.withdraw(home, plan.digest())
    administration.approve(home, other)
    administration.withdraw(home, other.digest())
    administration.withdraw(home, other.digest())
    assert kinds(home) == ["open", "approve", "withdraw", "approve", "withdraw"]
    assert list((home / "approved").iterdir()) == []


def test_an_approval_that_dies_half_way_is_completed_by_the_next_and_undone_by_withdrawing(
    homes: dict[str, Path], plan: Plan
) -> None:
    """The cost is set aside first: at no moment is there an approved plan that nothing pays for."""
    home = homes["party-1"]
    with mock.patch.object(Approvals, "approve", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        administration.approve(home, plan)
    assert kinds(home) == ["open", "approve"]
    with closing(Party(home).ledger), pytest.raises(NotApproved):
        Approvals(home / "approved").get(plan.digest())
    administration.approve(home, plan)
    assert kinds(home) == ["open", "approve"]
    with mock.patch.object(Ledger, "withdraw", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        administration.withdraw(home, plan.digest())
    assert Approvals(home / "approved").digests() == []  # what is not approved may hold budget, never the reverse
    administration.withdraw(home, plan.digest())
    assert kinds(home) == ["open", "approve", "withdraw"]


def test_the_worker_decides_while_it_holds_the_ledger_and_while_it_computes(
    homes: dict[str, Path], plan: Plan, tmp_path: Path
) -> None:
    home, socket = homes["party-1"], tmp_path / "w.sock"
    party = Party(home)
    with pytest.raises(StoreInUse):
        administration.approve(home, plan)  # somebody holds the ledger and left no address
    (home / administration.ADDRESS).write_text(str(home / ADMINISTRATION_SOCKET))
    computing, done = threading.Event(), threading.Event()

    def busy(kind: str, envelope: Envelope) -> Envelope:
        computing.set()
        done.wait(30)
        return Envelope()

    with closing(Worker(party, socket)), mock.patch.object(party, "handle", busy):
        thread = threading.Thread(target=ask_worker, args=(socket, Request("ask")))
        thread.start()
        assert computing.wait(10)
        began = time.monotonic()
        administration.approve(home, plan)
        assert party.approvals.get(plan.digest()) == plan
        administration.withdraw(home, plan.digest())
        assert time.monotonic() - began < 10
        assert thread.is_alive()  # nobody waited for the computation
        costly = small_plan(rounds=4, privacy={"epsilon": 6.0, "delta": 1e-5})
        with pytest.raises(WorkerRefused, match="policy-refused"):
            administration.approve(home, costly)
        done.set()
        thread.join()
    assert kinds(home) == ["open", "approve", "withdraw"]


WHO = {"who": "system:ana"}


def test_the_socket_for_messages_takes_nothing_of_an_administrator(homes: dict[str, Path], plan: Plan) -> None:
    """Whoever took over the container that decodes the aggregator's bytes holds that socket, and only that one."""
    home = homes["party-1"]
    content = json.dumps(plan.model_dump(mode="json", by_alias=True))
    with closing(Worker(Party(home), home / "w.sock")) as worker:
        for kind, options in (
            (administration.APPROVE, {"plan": content} | WHO),
            (administration.WITHDRAW, {"digest": "0"} | WHO),
        ):
            for more in ({}, {"run": RUN, "plan": plan.digest(), "plan_text": content}):
                with pytest.raises(WorkerRefused):
                    ask_worker(worker.path, Request(kind, Envelope({}, options | more)))
        assert kinds(home) == ["open"]
        assert not worker.party.approvals.has(plan.digest())
        with pytest.raises(WorkerRefused):  # and the other one takes no messages
            ask_worker(worker.administration, Request("hello", hello(plan)))
        ask_worker(worker.administration, Request(administration.APPROVE, Envelope({}, {"plan": content} | WHO)))
        assert kinds(home) == ["open", "approve"]


def test_the_aggregator_cannot_approve() -> None:
    for kind in administration.ADMINISTRATION:
        assert kind not in KINDS
        assert not kind.isidentifier()  # the only actions that Flower lets a message have


def after_statistics(homes: dict[str, Path], plan: Plan) -> tuple[dict[str, Party], World, SecureSum]:
    """Parties that approved the plan and answered its first ask."""
    for home in homes.values():
        administration.approve(home, plan)
    parties = {name: Party(home) for name, home in homes.items()}
    world = World({name: party.handle for name, party in parties.items()})
    sums = SecureSum(plan, RUN, world)
    sums.agree_on_keys(world("hello", dict.fromkeys(sums.parties, sums.hello())).received)
    sums.total(STATISTICS, 0)
    return parties, world, sums


def test_an_approval_withdrawn_in_the_middle_of_a_run(homes: dict[str, Path], plan: Plan) -> None:
    parties, world, sums = after_statistics(homes, plan)
    party, training = parties["party-1"], CheapTraining(plan)
    ask = training.ask(0)
    assert ask is not None
    party.withdraw(plan.digest())
    spent = party.ledger.spent()
    with pytest.raises(Refusal, match="plan-not-approved"):
        sums.total(ask, 1)
    assert party.ledger.reserved() == []
    assert party.ledger.committed() == party.ledger.spent() == spent
    party.approve(plan)
    world("hello", dict.fromkeys(sums.parties, sums.hello()))
    sums.epoch = None
    sums.total(ask, 1)  # taken up where it stopped
    assert [entry.sequence for entry in party.ledger.history() if entry.kind == "charge"] == [0, 1]
    for each in parties.values():
        each.ledger.close()


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("per_run: 5", "per_run: 1", "policy-refused"),
        ("minimum_rows: 50", "minimum_rows: 61", "policy-refused"),
        ("in_total: 10", "in_total: 3.01\nmaximum_rounds: 4", "policy-refused"),
        ("maximum_delta: 1.0e-5", "maximum_delta: 1.0e-5\nstatistics_modes: [ckks]", "policy-refused"),
        ("in_total: 10", "in_total: ten", "bad-input"),
        (POLICY, "- no policy at all", "bad-input"),
    ],
)
def test_a_policy_tightened_in_the_middle_of_a_run_stops_the_next_ask_without_a_restart(
    homes: dict[str, Path], plan: Plan, old: str, new: str, code: str
) -> None:
    parties, _, sums = after_statistics(homes, plan)
    ask, party = CheapTraining(plan).ask(0), parties["party-1"]
    assert ask is not None
    policy = party.home / "policy.yaml"
    policy.write_text(POLICY.replace(old, new))
    with pytest.raises(Refusal, match=code):
        sums.total(ask, 1)
    assert sum(entry.kind == "charge" for entry in party.ledger.history()) == 1
    policy.write_text(POLICY)
    sums.total(ask, 1)
    for each in parties.values():
        each.ledger.close()


def test_a_policy_that_is_gone_forbids_everything(homes: dict[str, Path], plan: Plan) -> None:
    home = homes["party-1"]
    administration.approve(home, plan)
    party = Party(home)
    (home / "policy.yaml").unlink()
    with pytest.raises(InputError, match="is gone"):
        party.handle("hello", hello(plan))
    with pytest.raises(InputError, match="is gone"):
        party.approve(plan)
    (home / "policy.yaml").write_text(POLICY.replace("in_total: 10", "in_total: 20"))
    party.handle("hello", hello(plan))
    assert party.ledger.budget is not None
    assert party.ledger.budget.epsilon == 20
    assert kinds(home) == ["open", "approve", "budget", "reserve"]
    party.ledger.close()


def test_a_lowered_lifetime_budget_holds_for_runs_under_way_too(homes: dict[str, Path]) -> None:
    plan, other, third = cheap_plan(5), cheap_plan(4), cheap_plan(3)
    for home in homes.values():
        administration.approve(home, plan)
    parties = {name: Party(home) for name, home in homes.items()}
    world = World({name: party.handle for name, party in parties.items()})
    sums = SecureSum(plan, RUN, world)
    sums.agree_on_keys(world("hello", dict.fromkeys(sums.parties, sums.hello())).received)
    party = parties["party-1"]
    party.approve(other)
    lowered = POLICY.replace("in_total: 10", f"in_total: {between(plan, [plan, other])}")
    (party.home / "policy.yaml").write_text(lowered)
    with pytest.raises(BudgetError):
        party.approve(third)
    with pytest.raises(Refusal, match="budget-exceeded"):
        sums.total(STATISTICS, 0)
    party.withdraw(other.digest())
    sums.total(STATISTICS, 0)
    for each in parties.values():
        each.ledger.close()
