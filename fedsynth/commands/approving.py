"""What a person sees before approving: the plan in words, what it would cost, what was spent and may be spent."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from fed_node.consent.approvals import DIGEST, check_policy
from fed_node.consent.description import describe
from fed_node.ledger.book import Budget
from fed_node.ledger.ledger import LedgerView
from fed_node.ledger.lifetime import held, is_within
from fed_node.ledger.tally import tally_of
from fed_node.settings import LEDGER, PartySettings, budget_of, policy_at
from fedsynth.commands.checking import show_data
from fedsynth.commands.forecasting import show_forecast
from fedsynth.documents import read_plan
from synth.errors import BudgetError, InputError
from synth.plan import Plan
from synth.privacy.accounting import Spent
from synth.privacy.events import Event

FILTER = (
    "Plans are chosen in view of earlier results, so several are added up by a Rényi filter, which is proven for that "
    "and gives more than the tight ε of what was spent."
)


COLUMNS, INDENT = 80, 6
TYPED_CHARACTERS = 8  # of the digest's end, by whoever approves


def show_screen(console: Console, plan: Plan, home: Path, *, with_rows: bool = True) -> None:
    """All that whoever decides is told; refuses what the party would refuse anyway."""
    settings, policy = PartySettings.load(home), policy_at(home)
    if settings.name not in {party.name for party in plan.parties}:
        raise InputError(f"the plan does not name this party, '{settings.name}'; ask its author.")
    events = whole_cost(plan, settings.name)
    console.print(screen(plan, settings.name, events), markup=False, soft_wrap=True)
    show_forecast(console, plan)
    if policy is None:
        console.print("There is no policy.yaml here: nothing but your judgement limits this plan.", style="yellow")
    else:
        check_policy(policy, plan, settings.name)
    show_budget(console, home, plan, events)
    if with_rows:
        show_data(console, home, plan)


def is_typed(plan: Plan, typed: str) -> bool:
    """Whether somebody typed the end of the plan's digest: whoever does has looked at it."""
    return typed.strip().lower() == plan.digest()[-TYPED_CHARACTERS:]


def screen(plan: Plan, party: str, events: list[Event]) -> str:
    """The plan in words, in 80 columns. Only real lines begin at the margin or two spaces from it: what a long line
    goes on with stands further in, whatever it says, and however wide its letters are."""
    console, lines = Console(width=COLUMNS), []
    for line in describe(plan, party, events).splitlines():
        first, *more = (str(part).rstrip() for part in Text(line).wrap(console, COLUMNS - INDENT))
        lines += [first, *(" " * INDENT + part.lstrip() for part in more)]
    return "\n".join(lines)


def whole_cost(plan: Plan, party: str) -> list[Event]:
    from synth import programme  # builds the model; only this command needs it

    return programme.whole_cost(plan, party)


def show_budget(console: Console, home: Path, plan: Plan, events: list[Event]) -> None:
    """Where the plan would bring the ledger; refuses what the ledger would refuse."""
    budget = budget_of(PartySettings.load(home), policy_at(home))
    if budget is None:
        console.print("No budget is stated here; the worker will not start without one.", style="yellow")
        return
    stated = f"Your budget: ε = {budget.epsilon:g} at δ = {budget.delta:g}, over all runs. "
    standing = _standing(console, home, plan, events, budget)
    if standing.set_aside:
        console.print(
            f"{stated}This plan's cost is set aside already; spent and reserved, with it: {standing.now.epsilon:.4g}."
        )
        return
    console.print(
        f"{stated}Spent and reserved so far: {standing.now.epsilon:.4g}. With this plan: {standing.then.epsilon:.4g}."
    )
    if standing.then.method == "rdp-filter":
        console.print(FILTER)
    if not is_within(standing.then, budget):
        raise BudgetError(
            f"this plan would bring the dataset from ε = {standing.now.epsilon:.4g} to ε = "
            f"{standing.then.epsilon:.4g} at δ = {budget.delta:g}; the budget is {budget.epsilon:g}. Ask for a cheaper "
            "plan, withdraw one that still holds a reservation (`fedsynth node ledger` lists them), or raise the "
            "budget in policy.yaml."
        )


@dataclass(frozen=True)
class _Standing:
    """What is held against the budget now, and with the plan; whether the plan's cost is set aside already."""

    now: Spent
    then: Spent
    set_aside: bool


def _standing(console: Console, home: Path, plan: Plan, events: list[Event], budget: Budget) -> _Standing:
    if not (home / LEDGER).exists():
        return _Standing(held([], budget), held([], budget, tally_of(events)), set_aside=False)
    with closing(LedgerView(home / LEDGER)) as view:
        digest = plan.digest()
        if view.was_begun(digest):
            console.print("A run of this plan began here before. Approved again, another may spend.", style="yellow")
        waiting = any((each.plan_digest, each.run) == (digest, "") for each in view.reservations())
        return _Standing(view.committed(), view.committed_with(digest, events, budget), waiting)


def digest_to_withdraw(plan: str) -> str:
    """The digest of a plan that is given by its file or by its digest."""
    if DIGEST.fullmatch(plan):
        return plan
    return read_plan(Path(plan)).digest()
