"""A party whose volume fails, or whose aggregator sends nonsense: refused with a code, nothing charged, no crash."""

from __future__ import annotations

import functools
import random
import resource
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from aggregator.sums.secure_sum import SecureSum
from fed_node import party as party_module
from fed_node.errors import NotApproved, PolicyRefused, RunFinished, StoreInUse
from fed_node.guard import Refused, attempt
from fed_node.party import Party
from synth.errors import InputError, OutputError, ProtocolError
from synth.interface import Ask
from synth.messages import wire
from synth.messages.wire import Envelope
from synth.plan import Plan
from tests.fed_node.two_parties import ROWS, RUN, CheapTraining, World, make_homes, run_all, small_plan

MALFORMED = 1000


@dataclass
class Running:
    """A party in the middle of a run: its keys agreed, its first answers given, ask 2 to come."""

    plan: Plan
    parties: dict[str, Party]
    sums: SecureSum

    @property
    def party(self) -> Party:
        return self.parties["party-1"]

    def envelope(self, **options: Any) -> Envelope:
        """The proper next ask."""
        packed = wire.pack_ask(Ask({"state": np.zeros(4)}, {"phase": "training", "round": 1}))
        header: dict[str, Any] = {"run": RUN, "plan": self.plan.digest(), "epoch": 0, "sequence": 2}
        return Envelope(packed.arrays, packed.options | header | options)


@pytest.fixture(autouse=True)
def cheap_training() -> Iterator[None]:
    with mock.patch("synth.programme.build", CheapTraining):
        yield


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    plan = small_plan(rounds=5)
    parties = {name: Party(home) for name, home in make_homes(tmp_path, plan).items()}
    world = World({name: party.handle for name, party in parties.items()})
    sums = SecureSum(plan, RUN, world)
    sums.agree_on_keys(world("hello", dict.fromkeys(sums.parties, sums.hello())).received)
    sums.total(Ask(options={"phase": "statistics"}), 0)
    sums.total(Ask({"state": np.zeros(4)}, {"phase": "training", "round": 0}), 1)
    yield Running(plan, parties, sums)
    for party in parties.values():
        party.ledger.close()


def charges(party: Party) -> int:
    return sum(entry.kind == "charge" for entry in party.ledger.history())


# ── nonsense ──


def _scalar(rng: random.Random) -> Any:
    return rng.choice([-1, 2**70, 0.5, "", "summe", "../../x", True, "é" * rng.randrange(40), rng.random(), 10**6])


def _array(rng: random.Random) -> np.ndarray:
    shape = tuple(rng.randrange(4) for _ in range(rng.randrange(4)))
    kind = rng.choice(["f4", "f8", "i8", "u1", "?", "U3", "c16"])
    return np.zeros(shape, dtype=kind)


def _nonsense(rng: random.Random, proper: Envelope) -> tuple[str, Envelope]:
    """A message that is wrong in one to three ways."""
    kind, arrays, options = "ask", dict(proper.arrays), dict[str, Any](proper.options)
    required = ["run", "plan", "epoch", "sequence", "combine", "option/phase"]
    for _ in range(rng.randint(1, 3)):
        match rng.randrange(7):
            case 0:
                options.pop(rng.choice(required), None)
            case 1:  # no number: `True` in place of 1 must not pass for it, nor 2.0 for 2
                options[rng.choice(["epoch", "sequence"])] = rng.choice(["2", 2.0, True, -2, 2**80, 7, 1_000_000])
            case 2:
                options[rng.choice(["run", "plan", "combine", "option/phase"])] = _scalar(rng)
            case 3:
                arrays["ask/state"] = _array(rng)
            case 4:
                arrays = {f"ask/{rng.randrange(9)}": _array(rng)}
            case 5:
                arrays.pop("ask/state", None)
            case 6:
                kind = rng.choice(["", "asks", "ASK", "confirm", "open", "keys", "query.ask", "\x00"])
    return kind, Envelope(arrays, options)


def test_a_thousand_malformed_asks_cost_nothing_and_break_nothing(running: Running) -> None:
    rng, codes = random.Random(11), set()
    before = running.party.ledger.head
    for _ in range(MALFORMED):
        kind, envelope = _nonsense(rng, running.envelope())
        reply = attempt(kind, lambda kind=kind, envelope=envelope: running.party.handle(kind, envelope))  # type: ignore[misc]
        assert isinstance(reply, Refused), (kind, envelope)
        codes.add(reply.code)
    assert running.party.ledger.head == before
    assert "internal" not in codes, codes
    assert len(codes) >= 5
    running.sums.total(Ask({"state": np.zeros(4)}, {"phase": "training", "round": 1}), 2)  # and the run goes on
    assert charges(running.party) == 3


def test_runs_that_are_only_named_do_not_fill_the_memory(running: Running) -> None:
    for number in range(20):
        with pytest.raises(ProtocolError):
            running.party.handle("ask", running.envelope(run=f"run-x{number}"))
    assert len(running.party.runs) <= party_module.MOST_RUNS
    running.party.handle("ask", running.envelope())  # put aside, and taken up again


# ── the volume ──


def test_a_full_disk_at_the_charge_refuses_and_recovers(running: Running) -> None:
    path = running.party.home / "ledger.sqlite"
    limits, previous = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size // 2, limits[1]))
    try:
        reply = attempt("ask", lambda: running.party.handle("ask", running.envelope()))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, previous)
    assert reply == Refused("store-unwritable")
    assert charges(running.party) == 2
    running.party.handle("ask", running.envelope())
    assert charges(running.party) == 3


def test_an_answer_that_cannot_be_stored_does_not_leave_and_is_charged_once(running: Running) -> None:
    answers = running.party.home / "answers" / RUN
    answers.rename(answers.with_name("kept"))
    answers.symlink_to("/proc/self")  # a folder nobody can make files in
    with pytest.raises(OutputError):
        running.party.handle("ask", running.envelope())
    answers.unlink()
    answers.with_name("kept").rename(answers)
    running.party.handle("ask", running.envelope())
    running.party.handle("ask", running.envelope())
    assert charges(running.party) == 3


def test_two_workers_on_one_home(running: Running) -> None:
    with pytest.raises(StoreInUse):
        Party(running.party.home)
    running.party.handle("ask", running.envelope())


def test_rows_that_vanish_stop_the_party_before_anything_is_charged(tmp_path: Path) -> None:
    plan = small_plan(rounds=5)
    home = make_homes(tmp_path, plan)["party-1"]
    (home / "rows.csv").unlink()
    party = Party(home)
    with pytest.raises(InputError, match="does not exist"):
        party.handle("hello", Envelope({}, {"run": RUN, "plan": plan.digest(), "epoch": 0}))
    assert [entry.kind for entry in party.ledger.history()] == ["open", "approve"]
    party.ledger.close()


# ── restarts ──


def test_the_same_ask_gets_the_very_same_answer_after_a_restart_though_noise_is_never_the_same(tmp_path: Path) -> None:
    plan = small_plan(rounds=2)
    parties = {name: Party(home) for name, home in make_homes(tmp_path, plan, seed=None).items()}
    world = World({name: party.handle for name, party in parties.items()})
    sums = SecureSum(plan, RUN, world)
    sums.agree_on_keys(world("hello", dict.fromkeys(sums.parties, sums.hello())).received)
    ask = wire.pack_ask(Ask(options={"phase": "statistics"}))
    header: dict[str, Any] = {"run": RUN, "plan": plan.digest(), "epoch": 0, "sequence": 0}
    envelope = Envelope(ask.arrays, ask.options | header)
    first = parties["party-1"].handle("ask", envelope)
    for party in parties.values():
        party.ledger.close()
    restarted = Party(tmp_path / "party-1")
    assert wire.digest(restarted.handle("ask", envelope)) == wire.digest(first)
    assert charges(restarted) == 1
    restarted.ledger.close()


# ── the end of a run ──


def test_after_the_end_no_answer_is_given_a_second_time_but_the_end_can_be_repeated(tmp_path: Path) -> None:
    plan = small_plan(rounds=3)
    parties = {name: Party(home) for name, home in make_homes(tmp_path, plan, seed=None).items()}
    world = World({name: party.handle for name, party in parties.items()})
    outcome = run_all(plan, world)
    party, header = parties["party-1"], {"run": RUN, "plan": plan.digest()}
    assert not (party.home / "answers" / RUN).exists()
    entries = len(party.ledger.history())
    sums = SecureSum(plan, RUN, world)  # an aggregator that was killed before it published
    sums.agree_on_keys(world("hello", dict.fromkeys(sums.parties, sums.hello())).received)
    ask = wire.pack_ask(Ask(options={"phase": "statistics"}))
    epoch = sums.agreement.last_epoch
    with pytest.raises(RunFinished):
        party.handle("ask", Envelope(ask.arrays, {**ask.options, **header, "epoch": epoch, "sequence": 0}))
    again = {signed.statement.party: signed.statement for signed in sums.finish()}
    assert again == outcome.statements
    assert len(party.ledger.history()) == entries
    for each in parties.values():
        each.ledger.close()


# ── the policy ──

POLICY = "maximum_epsilon_per_run: 5\nmaximum_epsilon_in_total: 10\nmaximum_delta: 1.0e-5\nminimum_rows: 50\n"


def party_with(tmp_path: Path, policy: str, plan: Plan, **settings: Any) -> Party:
    home = make_homes(tmp_path, plan, **settings)["party-1"]
    (home / "policy.yaml").write_text(policy)
    return Party(home)


def hello(plan: Plan, **options: Any) -> Envelope:
    return Envelope({}, {"run": RUN, "plan": plan.digest(), "epoch": 0, **options})


def test_an_approved_plan_still_has_to_keep_the_policy(tmp_path: Path) -> None:
    plan = small_plan(rounds=5)
    party = party_with(tmp_path, POLICY.replace("per_run: 5", "per_run: 1"), plan)
    with pytest.raises(PolicyRefused, match="one run may spend 1"):
        party.handle("hello", hello(plan))
    party.ledger.close()


def test_the_policy_counts_the_rows_that_the_plan_declares_and_never_the_true_ones(tmp_path: Path) -> None:
    """The true number is data: a refusal at one row fewer would tell it exactly, and cost nothing."""
    plan = small_plan(rounds=5)
    party = party_with(tmp_path, POLICY, plan)
    rows = (party.home / "rows.csv").read_text().splitlines()
    assert len(rows) == ROWS + 1
    (party.home / "rows.csv").write_text("\n".join(rows[:40]))
    party.handle("hello", hello(plan))
    (party.home / "policy.yaml").write_text(POLICY.replace("rows: 50", f"rows: {ROWS + 1}"))
    with pytest.raises(PolicyRefused, match="declares 60 rows"):
        party.handle("hello", hello(plan))
    party.ledger.close()


def test_the_policys_total_is_the_ledgers_budget_and_is_stated_once(tmp_path: Path) -> None:
    plan = small_plan(rounds=5)
    party = party_with(tmp_path, POLICY, plan)
    assert party.ledger.budget is not None
    assert party.ledger.budget.epsilon == 10
    party.ledger.close()
    with pytest.raises(InputError, match="keep the policy's"):
        party_with(tmp_path / "both", POLICY, plan, budget={"epsilon": 3, "delta": 1e-6})


def test_a_plan_nobody_approved_is_taken_only_by_a_policy_that_names_its_schema(tmp_path: Path) -> None:
    plan, other = small_plan(rounds=5), small_plan(rounds=4)
    text = other.model_dump_json(by_alias=True)
    for name, policy in (("careful", POLICY), ("elsewhere", POLICY + f"auto_approve: ['{'0' * 64}']\n")):
        party = party_with(tmp_path / name, policy, plan)
        with pytest.raises(NotApproved):
            party.handle("hello", hello(other, plan_text=text))
        party.ledger.close()
    party = party_with(tmp_path / "easy", automatic(plan), plan)
    for nonsense in ("", "{}", "[" * 10_000, " " * 10**6 + text, plan.model_dump_json(by_alias=True)):
        with pytest.raises(NotApproved):
            party.handle("hello", hello(other, plan_text=nonsense))
    costly = small_plan(rounds=4, privacy={"epsilon": 6.0, "delta": 1e-5})
    with pytest.raises(PolicyRefused):
        party.handle("hello", hello(costly, plan_text=costly.model_dump_json(by_alias=True)))
    assert (party.runs, party.begun.digests()) == ({}, [])  # what is refused leaves nothing behind
    party.handle("hello", hello(other, plan_text=text))
    assert party.approvals.digests() == [plan.digest()]
    party.ledger.close()


def automatic(plan: Plan) -> str:
    return POLICY + f"auto_approve: ['{plan.table.digest()}']\n"


def test_what_a_policy_approved_ends_with_the_policy_and_with_a_withdrawal(tmp_path: Path) -> None:
    plan = small_plan(rounds=5)
    sent = hello(plan, plan_text=plan.model_dump_json(by_alias=True))
    party = party_with(tmp_path, automatic(plan), plan, approved=False)
    party.handle("hello", sent)
    party.runs.clear()
    party.handle("hello", hello(plan))  # after a restart the party still knows the plan of a run that began
    (party.home / "policy.yaml").write_text(POLICY)
    for _ in range(2):
        with pytest.raises(NotApproved):
            party.handle("hello", sent)
        party.runs.clear()
    (party.home / "policy.yaml").write_text(automatic(plan))
    party.handle("hello", sent)
    party.withdraw(plan.digest())
    for kind in ("hello", "keys", "finish"):
        for message in (sent, hello(plan, run="run-2", plan_text=sent.options["plan_text"])):
            with pytest.raises(ProtocolError):
                party.handle(kind, message)
    party.approve(plan)
    party.handle("hello", sent)
    party.ledger.close()


def test_under_an_approving_policy_runs_are_limited_by_the_budget_alone(tmp_path: Path) -> None:
    plan = small_plan(rounds=5)
    party = party_with(tmp_path, automatic(plan).replace("in_total: 10", "in_total: 3.01"), plan, approved=False)
    sent, replies = plan.model_dump_json(by_alias=True), []
    for number in range(9):
        message = hello(plan, run=f"run-{number}", plan_text=sent)
        replies.append(attempt("hello", functools.partial(party.handle, "hello", message)))
    refused = [reply.code for reply in replies if isinstance(reply, Refused)]
    assert 1 <= len(refused) < 9
    assert set(refused) == {"budget-exceeded"}
    party.ledger.close()
