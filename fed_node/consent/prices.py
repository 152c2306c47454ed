"""What a plan costs this party, worked out once, when it is approved, and kept for its run.

To find the noise that a budget buys takes seconds to minutes, and at `hello` the whole federation waits for it. The
file lies in the party's own folder and counts only for the code version and the party that wrote it. Nothing rests on
it alone: the ledger holds a run against what was set aside at the approval, which it wrote down itself, and every
charge against that. A file that says anything else is a plan that "costs something else than when it was approved".

Only what a person approved is kept: an aggregator that sends plans writes nothing here.
"""

from __future__ import annotations

import json
from pathlib import Path

from synth import VERSION
from synth.errors import PrivacyError
from synth.messages.archive import write_durably
from synth.plan import Plan
from synth.privacy.events import Event, as_records, from_dict
from synth.programme import whole_cost


class Prices:
    """The whole costs of approved plans, one file each, named by digest."""

    def __init__(self, folder: Path, party: str) -> None:
        self.folder, self.party = folder, party

    def of(self, plan: Plan) -> list[Event]:
        """All that a run of the plan will ever cost, as it was worked out at the approval; else now."""
        return self.kept(plan) or self.worked_out(plan)

    def worked_out(self, plan: Plan) -> list[Event]:
        return whole_cost(plan, self.party)

    def keep(self, plan: Plan, events: list[Event]) -> None:
        """What was worked out, once the ledger has set it aside."""
        content = {**self._binding(plan), "events": as_records(events)}
        write_durably(self._path(plan.digest()), json.dumps(content).encode())

    def kept(self, plan: Plan) -> list[Event] | None:
        """None: nothing was kept, or by another version, or it cannot be read; then it is worked out anew."""
        try:
            found = json.loads(self._path(plan.digest()).read_bytes())
            events = [from_dict(record) for record in found.pop("events")]
        except (OSError, ValueError, KeyError, TypeError, AttributeError, PrivacyError):
            return None
        return events if found == self._binding(plan) else None

    def withdraw(self, digest: str) -> None:
        self._path(digest).unlink(missing_ok=True)

    def _binding(self, plan: Plan) -> dict[str, str]:
        return {"version": VERSION, "party": self.party, "plan": plan.digest()}

    def _path(self, digest: str) -> Path:
        return self.folder / f"{digest}.json"
