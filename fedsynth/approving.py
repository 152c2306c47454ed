"""What a plan would cost a party, beside what it has spent and may spend."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from fed_node.ledger import ROUNDING, LedgerView
from fed_node.settings import LEDGER, PartySettings, budget_of, policy_at
from synth.errors import BudgetError
from synth.plan import Plan
from synth.privacy.accounting import compose
from synth.privacy.events import Event


def whole_cost(plan: Plan, party: str) -> list[Event]:
    from synth import inquiries  # builds the model; only this command needs it

    return inquiries.whole_cost(plan, party)


def show_budget(console: Console, home: Path, events: list[Event]) -> None:
    """Where the plan would bring the ledger; refuses what the ledger would refuse."""
    budget = budget_of(PartySettings.load(home), policy_at(home))
    if budget is None:
        console.print("No budget is stated here; the worker will not start without one.", style="yellow")
        return
    before: list[Event] = []
    if (home / LEDGER).exists():
        view = LedgerView(home / LEDGER)
        before = [*view.events(), *view.reserved()]
        view.close()
    now, after = compose(before, budget.delta), compose([*before, *events], budget.delta)
    console.print(
        f"Your budget: ε = {budget.epsilon:g} at δ = {budget.delta:g}, over all runs. Spent and reserved so far: "
        f"{now.epsilon:.4g}. With this plan: {after.epsilon:.4g}."
    )
    if after.epsilon > budget.epsilon * (1 + ROUNDING):
        raise BudgetError(
            f"this plan would bring the dataset to ε = {after.epsilon:.4g}; the budget is {budget.epsilon:g}. Ask for "
            "a cheaper plan, end a run that still holds a reservation, or raise the budget in policy.yaml."
        )
