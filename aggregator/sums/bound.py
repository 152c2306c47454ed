"""Which list of parties an ask's answers were asked to be confirmed with.

Where a plan tolerates losses, a party stands by one list for each of its answers and by no other, for sums over two
lists would differ by one party's numbers. So once a list was shown to the parties, that sum needs everybody on it, and
nobody else: not all of the plan, if somebody was lost before. The aggregator writes the list down before it shows it,
and a run that is taken up again asks those very parties.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from synth.messages.archive import write_durably


@dataclass(frozen=True)
class BoundLists:
    """The list of the latest ask, on the disk; earlier asks are absorbed and need none."""

    path: Path | None = None  # None: in simulations and tests that are not taken up again
    needed: set[str] = field(default_factory=set)  # whom the sum of this moment cannot do without

    def of(self, sequence: int) -> list[str] | None:
        """The list that an ask is bound to, if it was shown to anybody."""
        bound = None
        if self.path is not None and self.path.exists():
            found = json.loads(self.path.read_bytes())
            bound = list(found["parties"]) if found["sequence"] == sequence else None
        self.needed.clear()
        self.needed.update(bound or ())
        return bound

    def bind(self, sequence: int, parties: list[str]) -> None:
        """When this returns, the list is on the disk."""
        self.needed.update(parties)
        if self.path is not None:
            write_durably(self.path, json.dumps({"sequence": sequence, "parties": parties}).encode())
