"""A party's ledger for people: what may be spent, what was, what is set aside, and every entry."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table

from fed_node.ledger.ledger import Entry, LedgerView
from fed_node.ledger.view import Reservation
from synth.privacy.accounting import Spent

MEANING = {
    "open": "ledger begun",
    "budget": "budget set",
    "approve": "plan approved: its whole cost is set aside",
    "withdraw": "approval withdrawn: what was set aside is given back",
    "reserve": "run begins, with its whole cost set aside",
    "charge": "ask charged, before it is computed",
    "answer": "its answer is stored and may leave",
    "bind": "it may be opened in the sum of one list of parties only",
    "release": "run stopped: what it did not use is given back",
    "finish": "run ends for good: what it did not use is given back",
    "restore": "older copy put back: what the run spent beyond it is charged",
}
METHOD = {
    "pld": "composed tightly: it is one plan, fixed beforehand",
    "rdp": "composed by Rényi differential privacy: it is one plan, fixed beforehand",
    "rdp-filter": "by a Rényi filter: it holds however later plans were chosen",
    "none": "without any guarantee",
}


def ledger_report(ledger: LedgerView) -> RenderableType:
    return Group(_totals(ledger), "", _history(ledger.history()))


def _totals(ledger: LedgerView) -> Table:
    budget, spent, committed = ledger.budget, ledger.spent(), ledger.committed()
    table = Table(title=f"Dataset '{ledger.dataset}'", show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    table.add_row("budget", f"ε = {budget.epsilon:g} at δ = {budget.delta:g}" if budget else "none (simulation)")
    table.add_row("spent", f"{_epsilon(spent)} at δ = {spent.delta:g}")
    table.add_row("spent and reserved", f"{_epsilon(committed)}, {METHOD[committed.method]}")
    if budget:
        table.add_row("left", f"ε = {max(0.0, budget.epsilon - committed.epsilon):.4g} (ε of runs adds up to less)")
    for each in ledger.reservations():
        table.add_row("set aside", _reservation(each))
    table.add_row("head", ledger.head)
    return table


def _reservation(each: Reservation) -> str:
    holder = f"for run {each.run}" if each.run else "approved, not begun"
    return (
        f"{holder}, plan {each.plan_digest}: {'; '.join(event.brief() for event in each.events) or 'nothing is left'}"
    )


def _history(entries: list[Entry]) -> Table:
    table = Table(title="History", title_justify="left")
    table.add_column("#", no_wrap=True)
    table.add_column("time (UTC)", width=10, overflow="fold")
    table.add_column("what, by which mechanism", overflow="fold", ratio=1)
    table.add_column("run or plan", overflow="fold", max_width=14)
    table.add_column("ask", no_wrap=True)
    table.add_column("ε so far,\nat most", no_wrap=True)
    for entry in entries:
        table.add_row(
            str(entry.number),
            entry.time.removesuffix("+00:00").replace("T", " "),
            "\n".join([MEANING[entry.kind], *(f"· {event.brief()}" for event in entry.events)]),
            entry.run or entry.plan_digest[:12],
            str(entry.sequence) if entry.sequence >= 0 else "",
            _epsilon(entry.cumulative),
        )
    return table


def _epsilon(spent: Spent) -> str:
    return f"ε = {spent.epsilon:.4g}"
