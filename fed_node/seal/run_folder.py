"""What one run keeps on the party's volume between messages, and the one plan it belongs to.

The plan's digest is the first thing written there and is compared before anything else is read or written. A run that
comes again under another plan is refused: its journal says which numbers are bound to which list of parties under the
first plan, and the second must neither use nor forget that. A folder that names no plan is refused as well: nobody
knows what its run promised.

    <folder>/plan           the plan's digest
    <folder>/offer          see fed_node/seal/session.py
    <folder>/session        see fed_node/seal/session.py
    <folder>/journal.json   see fed_node/seal/journal.py
"""

from __future__ import annotations

from pathlib import Path

from fed_node.errors import RunOfAnotherPlan
from synth.messages.archive import write_durably

_PLAN = "plan"


class RunFolder:
    """The files of one run under one plan."""

    def __init__(self, path: Path, plan_digest: str) -> None:
        self.path, self.plan_digest = path, plan_digest
        self._require_plan()

    def read(self, name: str) -> bytes | None:
        """A file's content; None if it was never written."""
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Write durably, the plan's digest before all else. Readable by the owner alone."""
        if not self._require_plan():
            write_durably(self.path / _PLAN, self.plan_digest.encode())
        write_durably(self.path / name, content)

    def remove(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)

    def _require_plan(self) -> bool:
        """Whether the folder names its plan already; refuses one that names another, or none beside its files."""
        noted = self.read(_PLAN)
        if noted is None and not self._holds_files():
            return False
        if noted != self.plan_digest.encode():
            raise RunOfAnotherPlan(
                f"{self.path} was written under another plan, or by a version that did not note it. A run belongs to "
                "one plan for ever; the aggregator must start a new run."
            )
        return True

    def _holds_files(self) -> bool:
        """Names with a dot are of writes that a kill cut short; they say nothing."""
        return self.path.exists() and any(not file.name.startswith(".") for file in self.path.iterdir())
