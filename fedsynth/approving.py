"""What a plan would cost a party, beside what it has spent and may spend."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from fed_node.consent import DIGEST
from fed_node.ledger import ROUNDING, LedgerView
from fed_node.settings import LEDGER, PartySettings, budget_of, policy_at
from fedsynth.documents import read_plan
from synth.errors import BudgetError
from synth.plan import Plan
from synth.privacy.accounting import compose
from synth.privacy.events import Event


def whole_cost(plan: Plan, party: str) -> list[Event]:
    from synth import programme  # builds the model; only this command needs it

    return programme.whole_cost(plan, party)


def show_budget(console: Console, home: Path, plan: Plan, events: list[Event]) -> None:
    """Where the plan would bring the ledger; refuses what the ledger would refuse."""
    budget = budget_of(PartySettings.load(home), policy_at(home))
    if budget is None:
        console.print("No budget is stated here; the worker will not start without one.", style="yellow")
        return
    before, held = _ledger(console, home, plan)
    now = compose(before, budget.delta)
    if held:
        console.print(
            f"Your budget: ε = {budget.epsilon:g} at δ = {budget.delta:g}, over all runs. This plan's cost is set "
            f"aside already; spent and reserved, with it: {now.epsilon:.4g}."
        )
        return
    after = compose([*before, *events], budget.delta)
    console.print(
        f"Your budget: ε = {budget.epsilon:g} at δ = {budget.delta:g}, over all runs. Spent and reserved so far: "
        f"{now.epsilon:.4g}. With this plan: {after.epsilon:.4g}."
    )
    if after.epsilon > budget.epsilon * (1 + ROUNDING):
        raise BudgetError(
            f"this plan would bring the dataset from ε = {now.epsilon:.4g} to ε = {after.epsilon:.4g} at δ = "
            f"{budget.delta:g}; the budget is {budget.epsilon:g}. Ask for a cheaper plan, withdraw one that still "
            "holds a reservation (`fedsynth node ledger` lists them), or raise the budget in policy.yaml."
        )


def _ledger(console: Console, home: Path, plan: Plan) -> tuple[list[Event], bool]:
    """Everything spent and reserved so far, and whether this plan's cost is in it."""
    if not (home / LEDGER).exists():
        return [], False
    view = LedgerView(home / LEDGER)
    try:
        if view.is_used_up(plan.digest(), run=""):
            console.print("This plan was carried out here before. Approved again, it may spend again.", style="yellow")
        held = any(each.plan_digest == plan.digest() for each in view.reservations())
        return [*view.events(), *view.reserved()], held
    finally:
        view.close()


def digest_to_withdraw(plan: str) -> str:
    """The digest of a plan that is given by its file or by its digest."""
    if DIGEST.fullmatch(plan):
        return plan
    return read_plan(Path(plan)).digest()
