"""What the party's own monitoring may read, in Prometheus' text format: the budget, and that the worker lives.

It is served only where the party asks for it (`fedsynth node serve --metrics-port`). Nothing in it is computed from
rows: charges follow from plans that the party approved.
"""

from __future__ import annotations

from pathlib import Path

from fed_node.errors import StoreError
from fed_node.ledger.ledger import LedgerView
from synth.errors import InputError


class BudgetMetrics:
    """The ledger as gauges; ε is composed anew only when an entry was added."""

    def __init__(self, party: str, ledger: Path) -> None:
        self.party, self.ledger = party, ledger
        self._head, self._text = "", ""

    def text(self) -> str:
        try:
            view = LedgerView(self.ledger)
        except (InputError, StoreError):  # not made yet, or damaged: the worker's log says which
            return "fedsynth_up 1\nfedsynth_ledger_readable 0\n"
        try:
            if view.head != self._head:
                self._head, self._text = view.head, self._gauges(view)
        finally:
            view.close()
        return self._text

    def _gauges(self, view: LedgerView) -> str:
        labels = f'{{party="{self.party}",dataset="{view.dataset}"}}'
        values = {
            "fedsynth_epsilon_spent": view.spent().epsilon,
            "fedsynth_epsilon_committed": view.committed().epsilon,  # with what open runs have reserved
            "fedsynth_epsilon_budget": view.budget.epsilon if view.budget else None,
            "fedsynth_ledger_entries": len(view.history()),
        }
        lines = [f"# TYPE {name} gauge\n{name}{labels} {value}" for name, value in values.items() if value is not None]
        return "\n".join(["fedsynth_up 1", "fedsynth_ledger_readable 1", *lines]) + "\n"
