"""What a ledger lets through, what it refuses, and what it remembers."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fed_node.errors import (
    AskChanged,
    NotApproved,
    NotReserved,
    RunFinished,
    RunOfAnotherPlan,
    StoreDamaged,
    StoreInUse,
)
from fed_node.ledger.ledger import Budget, Ledger, LedgerView
from synth.errors import BudgetError, InputError
from synth.privacy.accounting import compose
from synth.privacy.events import CountNoise, Event, SampledGaussian, Unaccounted
from synth.privacy.lifetime import compose_adaptively

DELTA = 1e-6
BUDGET = Budget(epsilon=8.0, delta=DELTA)
COUNTS = CountNoise(queries=10, variance=4000.0)
TRAINING = SampledGaussian(sample_rate=0.02, noise_multiplier=1.5, steps=100)
PLAN = "p" * 64


def steps(count: int) -> SampledGaussian:
    return SampledGaussian(TRAINING.sample_rate, TRAINING.noise_multiplier, count)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


def test_a_run_from_reservation_to_release(path: Path) -> None:
    ledger = Ledger(path, "patients", BUDGET)
    reserved = ledger.reserve("r1", PLAN, [COUNTS, TRAINING], automatic=True)
    assert reserved.cumulative.epsilon == compose([COUNTS, TRAINING], DELTA).epsilon
    assert ledger.spent().epsilon == 0
    ledger.charge("r1", PLAN, 0, "a", [COUNTS])
    charged = ledger.charge("r1", PLAN, 1, "b", [steps(30)])
    assert charged.cumulative == reserved.cumulative
    assert ledger.spent() == compose([COUNTS, steps(30)], DELTA)
    assert ledger.reserved() == [steps(70)]
    released = ledger.release("r1")
    assert released.events == (steps(70),)
    assert released.cumulative == ledger.spent() == ledger.committed()
    assert ledger.reserved() == []
    assert [entry.kind for entry in ledger.history()] == ["open", "reserve", "charge", "charge", "release"]


def test_nothing_is_forgotten_by_a_restart(path: Path) -> None:
    ledger = Ledger(path, "patients", BUDGET)
    ledger.reserve("r1", PLAN, [COUNTS, TRAINING], automatic=True)
    ledger.charge("r1", PLAN, 0, "a", [COUNTS])
    before, head = ledger.history(), ledger.head
    ledger.close()
    again = Ledger(path, "patients", BUDGET)
    assert (again.history(), again.head) == (before, head)
    assert again.reserved() == [TRAINING]
    assert again.charge("r1", PLAN, 0, "a", [COUNTS]) == before[-1]


def test_the_same_ask_is_charged_once(path: Path) -> None:
    ledger = Ledger(path, "patients", BUDGET)
    assert ledger.reserve("r1", PLAN, [TRAINING], automatic=True) == ledger.reserve(
        "r1", PLAN, [TRAINING], automatic=True
    )
    first = ledger.charge("r1", PLAN, 0, "a", [steps(60)])
    assert ledger.charge("r1", PLAN, 0, "a", [steps(60)]) == first
    assert ledger.release("r1") == ledger.release("r1")
    assert ledger.charge("r1", PLAN, 0, "a", [steps(60)]) == first  # resent after the end: still free
    assert ledger.events() == [steps(60)]
    assert len(ledger.history()) == 4


def test_another_ask_under_the_same_number_is_refused(path: Path) -> None:
    ledger = Ledger(path, "patients", BUDGET)
    ledger.reserve("r1", PLAN, [TRAINING], automatic=True)
    ledger.charge("r1", PLAN, 0, "a", [steps(1)])
    with pytest.raises(AskChanged, match="ask 0"):
        ledger.charge("r1", PLAN, 0, "b", [steps(1)])
    with pytest.raises(RunOfAnotherPlan, match="another plan"):
        ledger.charge("r1", "q" * 64, 1, "b", [steps(1)])
    with pytest.raises(RunOfAnotherPlan, match="another plan"):
        ledger.reserve("r1", "q" * 64, [TRAINING], automatic=True)
    with pytest.raises(AskChanged, match="another cost"):
        ledger.reserve("r1", PLAN, [steps(3)], automatic=True)
    assert ledger.events() == [steps(1)]


@pytest.mark.parametrize(
    "cost",
    [
        [steps(101)],
        [COUNTS, COUNTS],
        [CountNoise(queries=10, variance=3999.0)],
        [CountNoise(queries=11, variance=4000.0)],
        [SampledGaussian(0.02, 1.4, 1)],
        [Unaccounted("exact histogram")],
    ],
)
def test_a_charge_beyond_the_reservation_is_refused(path: Path, cost: list[Event]) -> None:
    ledger = Ledger(path, "patients", BUDGET)
    ledger.reserve("r1", PLAN, [COUNTS, TRAINING], automatic=True)
    with pytest.raises(BudgetError, match="reservation"):
        ledger.charge("r1", PLAN, 0, "a", cost)
    assert ledger.events() == []


def test_charges_need_a_reservation(path: Path) -> None:
    ledger = Ledger(path, "patients", BUDGET)
    with pytest.raises(NotReserved):
        ledger.charge("r1", PLAN, 0, "a", [])
    with pytest.raises(NotReserved):
        ledger.release("r1")
    ledger.reserve("r1", PLAN, [TRAINING], automatic=True)
    ledger.release("r1")
    with pytest.raises(NotReserved, match="ended"):
        ledger.charge("r1", PLAN, 0, "a", [steps(1)])


def test_the_budget_holds_over_all_runs_and_reservations(path: Path) -> None:
    alone, both = (compose_adaptively([TRAINING] * runs, DELTA).epsilon for runs in (1, 2))
    ledger = Ledger(path, "patients", Budget((alone + both) / 2, DELTA))
    ledger.reserve("r1", PLAN, [TRAINING], automatic=True)
    with pytest.raises(BudgetError, match=r"budget is"):
        ledger.reserve("r2", PLAN, [TRAINING], automatic=True)
    ledger.charge("r1", PLAN, 0, "a", [steps(10)])
    ledger.release("r1")  # 90 steps are free again
    ledger.reserve("r2", PLAN, [steps(90)], automatic=True)
    with pytest.raises(BudgetError):
        ledger.reserve("r1", PLAN, [TRAINING], automatic=True)
    ledger.release("r2")
    ledger.reserve("r1", PLAN, [TRAINING], automatic=True)  # taken up again: the 10 steps it spent are part of its 100
    assert ledger.reserved() == [steps(90)]


def test_a_budget_that_is_exactly_enough_is_enough(path: Path) -> None:
    ledger = Ledger(path, "patients", Budget(compose([COUNTS, TRAINING], DELTA).epsilon, DELTA))
    ledger.reserve("r1", PLAN, [TRAINING, COUNTS], automatic=True)


def test_no_guarantee_needs_no_budget(path: Path, tmp_path: Path) -> None:
    leak = Unaccounted("exact category counts")
    with pytest.raises(BudgetError, match="exact category counts"):
        Ledger(path, "patients", BUDGET).reserve("r1", PLAN, [leak], automatic=True)
    free = Ledger(tmp_path / "public.sqlite", "adult", None)
    free.reserve("r1", PLAN, [leak], automatic=True)
    assert free.charge("r1", PLAN, 0, "a", [leak]).cumulative.epsilon == float("inf")
    assert free.spent().epsilon == float("inf")
    assert json.loads(free.to_json())["spent"]["epsilon"] == "unbounded"


def test_a_changed_budget_is_written_down(path: Path) -> None:
    Ledger(path, "patients", BUDGET).close()
    Ledger(path, "patients", Budget(9.0, DELTA)).close()
    ledger = Ledger(path, "patients", Budget(9.0, DELTA))
    assert [(entry.kind, entry.budget) for entry in ledger.history()] == [
        ("open", BUDGET),
        ("budget", Budget(9.0, DELTA)),
    ]


def test_a_ledger_belongs_to_one_dataset(path: Path) -> None:
    Ledger(path, "patients", BUDGET).close()
    with pytest.raises(InputError, match="'patients'"):
        Ledger(path, "claims", BUDGET)
    Ledger(path, "patients", BUDGET)  # the refusal let go of the lock


def test_one_writer_many_readers(path: Path) -> None:
    with pytest.raises(InputError, match="no ledger"):
        LedgerView(path)
    ledger = Ledger(path, "patients", BUDGET)
    ledger.reserve("r1", PLAN, [TRAINING], automatic=True)
    with pytest.raises(StoreInUse, match="one writer"):
        Ledger(path, "patients", BUDGET)
    view = LedgerView(path)
    assert view.history() == ledger.history()
    ledger.charge("r1", PLAN, 0, "a", [steps(1)])  # not disturbed by the reader
    assert LedgerView(path).events() == [steps(1)]
    ledger.close()
    Ledger(path, "patients", BUDGET)


def test_the_export_holds_everything_an_auditor_composes(path: Path) -> None:
    ledger = Ledger(path, "patients", BUDGET)
    ledger.reserve("r1", PLAN, [COUNTS, TRAINING], automatic=True)
    ledger.charge("r1", PLAN, 0, "a", [COUNTS])
    export = json.loads(ledger.to_json())
    assert export["budget"] == {"epsilon": 8.0, "delta": DELTA}
    assert export["head"] == export["entries"][-1]["hash"]
    assert export["entries"][-1]["events"] == [
        {"kind": "count_noise", "queries": 10, "variance": 4000.0, "mechanism": "skellam", "trust": "shared"}
    ]
    assert ledger.verify() == 3


def test_time_decides_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(path, "patients", BUDGET)
    ledger.reserve("r1", PLAN, [TRAINING], automatic=True)
    monkeypatch.setattr("fed_node.ledger.ledger.utc_now", lambda: "1970-01-01T00:00:00+00:00")
    ledger.charge("r1", PLAN, 0, "a", [steps(1)])
    monkeypatch.setattr("fed_node.ledger.ledger.utc_now", lambda: "2999-01-01T00:00:00+00:00")
    ledger.charge("r1", PLAN, 1, "b", [steps(1)])
    ledger.close()
    again = Ledger(path, "patients", BUDGET)
    assert again.events() == [steps(2)]
    assert again.verify() == 4


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["reserve", "charge", "release", "restart"]),
        st.sampled_from(["r1", "r2", "r3"]),
        st.integers(0, 3),  # sequence
        st.integers(1, 70),  # steps
    ),
    max_size=25,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=ACTIONS)
def test_recorded_is_never_less_than_spent_nor_more_than_the_budget(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[str, str, int, int]]
) -> None:
    """Whatever is asked in whatever order: cumulative ε bounds the exact one, and the budget bounds both."""
    path = tmp_path_factory.mktemp("ledger") / "ledger.sqlite"
    budget = Budget(compose([steps(150)], DELTA).epsilon, DELTA)
    ledger = Ledger(path, "patients", budget)
    charged: dict[tuple[str, int], int] = {}
    for action, run, sequence, count in actions:
        try:
            if action == "reserve":
                ledger.reserve(run, PLAN, [steps(70)], automatic=True)
            elif action == "charge":
                ledger.charge(run, PLAN, sequence, "a", [steps(count)])
                charged.setdefault((run, sequence), count)
            elif action == "release":
                ledger.release(run)
            else:
                ledger.close()
                ledger = Ledger(path, "patients", budget)
        except (BudgetError, NotReserved):
            pass
        total = sum(charged.values())
        assert ledger.events() == ([steps(total)] if total else [])
        recorded = ledger.history()[-1].cumulative.epsilon
        assert ledger.spent().epsilon <= recorded * (1 + 1e-12)
        assert recorded <= budget.epsilon * (1 + 1e-9)
    ledger.close()


# ── approvals ──


def test_an_approval_sets_the_whole_cost_aside_and_its_run_takes_it_over(path: Path) -> None:
    ledger = Ledger(path, "patients", BUDGET)
    approved = ledger.approve(PLAN, [COUNTS, TRAINING])
    assert approved == ledger.approve(PLAN, [COUNTS, TRAINING])
    assert [(each.plan_digest, each.run) for each in ledger.reservations()] == [(PLAN, "")]
    assert ledger.committed() == compose([COUNTS, TRAINING], DELTA)
    reserved = ledger.reserve("r1", PLAN, [COUNTS, TRAINING], automatic=True)
    assert reserved.cumulative == approved.cumulative  # taken over, not reserved beside it
    assert [(each.plan_digest, each.run) for each in ledger.reservations()] == [(PLAN, "r1")]
    ledger.charge("r1", PLAN, 0, "a", [steps(30)])
    ledger.release("r1")
    assert ledger.reserved() == []
    assert ledger.committed() == ledger.spent() == compose([steps(30)], DELTA)
    assert [e.kind for e in ledger.history()] == ["open", "approve", "reserve", "charge", "release"]
    head, history = ledger.head, ledger.history()
    ledger.close()
    view = LedgerView(path)
    assert (view.head, view.history()) == (head, history)


def test_approvals_hold_the_budget_against_each_other_and_give_it_back(path: Path) -> None:
    alone, both = (compose_adaptively([TRAINING] * plans, DELTA).epsilon for plans in (1, 2))
    ledger = Ledger(path, "patients", Budget((alone + both) / 2, DELTA))
    ledger.approve(PLAN, [TRAINING])
    with pytest.raises(BudgetError, match=rf"ε = {both:.4g} .*budget is {(alone + both) / 2:g}"):
        ledger.approve("q" * 64, [TRAINING])
    with pytest.raises(BudgetError):
        ledger.reserve("other", "q" * 64, [TRAINING], automatic=True)
    (withdrawn,) = ledger.withdraw(PLAN)
    assert (withdrawn.kind, withdrawn.cumulative.epsilon) == ("withdraw", 0)
    assert ledger.withdraw(PLAN) == []
    ledger.approve("q" * 64, [TRAINING])


def test_withdrawing_ends_a_run_that_is_under_way_and_keeps_what_it_spent(path: Path) -> None:
    ledger = Ledger(path, "patients", BUDGET)
    ledger.approve(PLAN, [TRAINING])
    ledger.reserve("r1", PLAN, [TRAINING], automatic=True)
    ledger.charge("r1", PLAN, 0, "a", [steps(10)])
    ledger.withdraw(PLAN)
    with pytest.raises(NotReserved):
        ledger.charge("r1", PLAN, 1, "b", [steps(10)])
    assert ledger.committed() == compose([steps(10)], DELTA)
    for run in ("r1", "r2"):
        with pytest.raises(NotApproved):
            ledger.reserve(run, PLAN, [TRAINING], automatic=True)  # no policy approves what was withdrawn
    ledger.approve(PLAN, [TRAINING])
    ledger.reserve("r1", PLAN, [TRAINING], automatic=True)  # taken up where it stopped
    assert ledger.charge("r1", PLAN, 1, "b", [steps(10)]).kind == "charge"
    assert ledger.committed() == compose([TRAINING], DELTA)


def test_one_approval_is_for_the_first_run_that_begins(path: Path) -> None:
    ledger = Ledger(path, "patients", BUDGET)
    with pytest.raises(NotApproved):
        ledger.reserve("r1", PLAN, [TRAINING])
    ledger.approve(PLAN, [TRAINING])
    ledger.reserve("r1", PLAN, [TRAINING])
    for number in range(2, 8):  # the run is never ended, which used to leave the approval standing
        with pytest.raises(NotApproved, match="one approval is for one run"):
            ledger.reserve(f"r{number}", PLAN, [TRAINING])
    ledger.approve(PLAN, [TRAINING])
    ledger.reserve("r2", PLAN, [TRAINING])
    ledger.finish("r2")
    with pytest.raises(NotApproved):
        ledger.reserve("r3", PLAN, [TRAINING])
    assert ledger.committed() == compose([TRAINING], DELTA)


def test_what_nobody_approved_can_be_withdrawn_before_a_policy_does(path: Path) -> None:
    ledger = Ledger(path, "patients", BUDGET)
    assert [entry.kind for entry in ledger.withdraw(PLAN)] == ["withdraw"]
    ledger.close()
    again = Ledger(path, "patients", BUDGET)
    with pytest.raises(NotApproved):
        again.reserve("r1", PLAN, [TRAINING], automatic=True)
    again.approve(PLAN, [TRAINING])
    again.reserve("r1", PLAN, [TRAINING], automatic=True)


def test_a_plan_that_costs_something_else_by_now_is_approved_anew(path: Path) -> None:
    ledger = Ledger(path, "patients", BUDGET)
    ledger.approve(PLAN, [TRAINING])
    with pytest.raises(NotApproved, match="approve it again"):
        ledger.reserve("r1", PLAN, [steps(101)], automatic=True)
    ledger.approve(PLAN, [steps(101)])
    ledger.reserve("r1", PLAN, [steps(101)], automatic=True)
    assert ledger.reserved() == [steps(101)]


def test_a_budget_lowered_below_what_is_reserved_stops_the_next_charge(path: Path) -> None:
    ledger = Ledger(path, "patients", BUDGET)
    ledger.reserve("r1", PLAN, [TRAINING], automatic=True)
    ledger.charge("r1", PLAN, 0, "a", [steps(1)])
    ledger.set_budget(Budget(compose([TRAINING], DELTA).epsilon / 2, DELTA))
    with pytest.raises(BudgetError, match="budget is"):
        ledger.charge("r1", PLAN, 1, "b", [steps(1)])
    assert ledger.charge("r1", PLAN, 0, "a", [steps(1)]).sequence == 0  # paid for, so it may be sent again
    ledger.set_budget(BUDGET)
    assert ledger.charge("r1", PLAN, 1, "b", [steps(1)]).sequence == 1


@given(actions=st.lists(st.tuples(st.sampled_from(["approve", "withdraw", "reserve", "charge", "release", "finish"]),
                                  st.integers(0, 1), st.integers(0, 1)), max_size=12))  # fmt: skip
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_approved_and_withdrawn_nothing_spent_is_forgotten_and_the_budget_holds(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[str, int, int]]
) -> None:
    """Plans and runs in any order; the ledger must agree with itself after a restart."""
    path, budget = tmp_path_factory.mktemp("any") / "ledger.sqlite", Budget(2.0, DELTA)
    ledger, charged = Ledger(path, "patients", budget), 0
    for number, (action, plan, run) in enumerate(actions):
        digest, name = str(plan) * 64, f"r{run}"
        try:
            match action:
                case "approve":
                    ledger.approve(digest, [steps(40)])
                case "withdraw":
                    ledger.withdraw(digest)
                case "reserve":
                    ledger.reserve(name, digest, [steps(40)], automatic=True)
                case "charge":
                    ledger.charge(name, digest, number, "a", [steps(20)])
                    charged += 20
                case "release":
                    ledger.release(name)
                case "finish":
                    ledger.finish(name)
        except (BudgetError, NotReserved, NotApproved, RunOfAnotherPlan, RunFinished):
            continue
    assert ledger.events() == ([steps(charged)] if charged else [])
    assert ledger.spent().epsilon <= ledger.committed().epsilon <= budget.epsilon * (1 + 1e-9)
    assert ledger.history()[-1].cumulative.epsilon >= ledger.spent().epsilon
    before = (ledger.head, ledger.reservations(), ledger.committed())
    ledger.close()
    again = Ledger(path, "patients", budget)
    assert (again.head, again.reservations(), again.committed()) == before
    again.close()


# ── answers and ends ──


def test_an_answer_is_noted_once_and_is_the_only_one(path: Path) -> None:
    ledger = Ledger(path, "patients", BUDGET)
    ledger.reserve("r1", PLAN, [TRAINING], automatic=True)
    with pytest.raises(StoreDamaged, match="never charged"):
        ledger.answer("r1", 0, "a", "x")
    charged = ledger.charge("r1", PLAN, 0, "a", [steps(1)])
    with pytest.raises(StoreDamaged, match="never charged"):
        ledger.answer("r1", 0, "b", "x")
    noted = ledger.answer("r1", 0, "a", "x")
    assert (noted.kind, noted.cumulative, noted.events) == ("answer", charged.cumulative, ())
    assert ledger.answer("r1", 0, "a", "x") == noted
    ledger.close()
    again = Ledger(path, "patients", BUDGET)
    assert (again.is_answered("r1", 0), again.is_answered("r1", 1)) == (True, False)
    with pytest.raises(StoreDamaged, match="not the one"):
        again.answer("r1", 0, "a", "y")
    assert len(again.history()) == 4


def test_a_finished_run_is_finished_for_good(path: Path) -> None:
    ledger = Ledger(path, "patients", BUDGET)
    ledger.reserve("r1", PLAN, [TRAINING], automatic=True)
    ledger.charge("r1", PLAN, 0, "a", [steps(10)])
    finished = ledger.finish("r1")
    assert (finished.kind, finished.events) == ("finish", (steps(90),))
    assert ledger.finish("r1") == ledger.release("r1") == finished
    ledger.close()
    again = Ledger(path, "patients", BUDGET)
    assert again.is_finished("r1")
    again.approve(PLAN, [TRAINING])
    with pytest.raises(RunFinished):
        again.reserve("r1", PLAN, [TRAINING], automatic=True)
    with pytest.raises(RunFinished):
        again.charge("r1", PLAN, 1, "b", [steps(1)])


# ── plans chosen in view of earlier results ──


def test_the_first_plan_may_use_the_whole_budget_and_then_nothing_comes_after_it(path: Path) -> None:
    plan = TRAINING
    budget = Budget(compose([plan], DELTA).epsilon, DELTA)
    assert compose_adaptively([plan], DELTA).epsilon > budget.epsilon
    ledger = Ledger(path, "patients", budget)
    assert ledger.approve(PLAN, [plan]).cumulative.method == "pld"
    assert ledger.reserve("r1", PLAN, [plan]).cumulative.epsilon == budget.epsilon
    ledger.charge("r1", PLAN, 0, "a", [steps(1)])
    ledger.finish("r1")  # after one step of a hundred: what it gave away may decide what is asked next
    with pytest.raises(BudgetError):
        ledger.approve("q" * 64, [steps(1)])
    ledger.set_budget(Budget(2 * budget.epsilon, DELTA))  # now the first plan is inside the filter's room
    assert ledger.approve("q" * 64, [steps(1)]).cumulative.method == "rdp-filter"


def test_a_first_plan_that_answered_nothing_leaves_the_budget_whole(path: Path) -> None:
    ledger = Ledger(path, "patients", Budget(compose([TRAINING], DELTA).epsilon, DELTA))
    ledger.approve(PLAN, [TRAINING])
    ledger.reserve("r1", PLAN, [TRAINING])
    ledger.finish("r1")
    assert ledger.committed().epsilon == 0
    ledger.approve("q" * 64, [TRAINING])


def test_three_plans_of_one_fit_into_three(path: Path) -> None:
    plan = steps(194)
    assert 0.99 < compose([plan], DELTA).epsilon <= 1
    ledger = Ledger(path, "patients", Budget(3.0, DELTA))
    methods = []
    for number in range(3):
        digest = str(number) * 64
        ledger.approve(digest, [plan])
        methods.append(ledger.reserve(f"r{number}", digest, [plan]).cumulative.method)
        ledger.charge(f"r{number}", digest, 0, "a", [plan])
        ledger.finish(f"r{number}")
        assert ledger.spent().epsilon <= ledger.committed().epsilon
    assert methods == ["pld", "rdp-filter", "rdp-filter"]
    assert ledger.spent().method == "pld"
    assert ledger.committed() == compose_adaptively([plan] * 3, DELTA)
