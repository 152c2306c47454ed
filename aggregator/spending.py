"""The aggregator's own tally of what each party spends: costs are functions of plan and ask, so it can follow along.

It is for display only; the record that counts is each party's ledger.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from synth.certificate import as_records, claim_of, worst
from synth.interface import Ask, Inquiry
from synth.plan import Plan
from synth.privacy.events import Event, from_dict


class Spending:
    """Events by party, as asked so far."""

    def __init__(self, plan: Plan, records: dict[str, list[dict[str, Any]]] | None = None) -> None:
        self.plan = plan
        self.events: dict[str, list[Event]] = defaultdict(list)
        for party, events in (records or {}).items():
            self.events[party] = [from_dict(event) for event in events]

    def add(self, inquiry: Inquiry, ask: Ask) -> None:
        for party in self.plan.parties:
            self.events[party.name] += inquiry.cost(ask, party.name)

    def epsilon(self) -> float | None:
        """ε of the most exposed party; None when there is no finite bound."""
        return worst([claim_of(events, self.plan.delta) for events in self.events.values()]).epsilon

    def to_records(self) -> dict[str, list[dict[str, Any]]]:
        return {party: as_records(events) for party, events in self.events.items()}
