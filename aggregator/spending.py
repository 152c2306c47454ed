"""The aggregator's own tally, ask by ask: whose answers are in the sum, what noise is in it, and what it cost them.

Costs are functions of plan and ask, so it can follow along. ε is for display only: the record that counts is each
party's ledger. Who took part goes into the certificate.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from synth.certificate.participation import Participation, joined
from synth.interface import Ask, Inquiry
from synth.plan import Plan
from synth.privacy.claims import claim_of, worst
from synth.privacy.events import Event, as_records, from_dict
from synth.privacy.shares import opened_variances

JsonRecords = list[dict[str, Any]]


class Spending:
    """Events by party and sums by ask, as absorbed so far."""

    def __init__(
        self, plan: Plan, spent: dict[str, JsonRecords] | None = None, sums: JsonRecords | None = None
    ) -> None:
        self.plan = plan
        self.events: dict[str, list[Event]] = defaultdict(list)
        for party, events in (spent or {}).items():
            self.events[party] = [from_dict(event) for event in events]
        self.participation = [Participation.model_validate(record) for record in sums or []]

    def add(self, inquiry: Inquiry, ask: Ask, sequence: int, parties: list[str]) -> None:
        """One sum more: ask number `sequence` of the run, answered by these parties."""
        costs = {party: inquiry.cost(ask, party) for party in parties}
        for party, events in costs.items():
            self.events[party] += events
        phase = str(ask.options["phase"])
        found = (opened_variances(self.plan, events, len(parties), phase) for events in costs.values())
        variances = sorted({variance for each in found for variance in each})
        summed = Participation(phase=phase, first=sequence, last=sequence, parties=parties, count_variance=variances)
        self.participation = joined(self.participation, summed)

    def epsilon(self) -> float | None:
        """ε of the most exposed party; None when there is no finite bound."""
        return worst([claim_of(events, self.plan.delta) for events in self.events.values()]).epsilon

    def to_records(self) -> dict[str, Any]:
        """`spent` and `sums`, as a position keeps them."""
        return {
            "spent": {party: as_records(events) for party, events in self.events.items()},
            "sums": [each.model_dump(mode="json") for each in self.participation],
        }
