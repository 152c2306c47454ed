"""Plans that the aggregator asked for and nobody here approved, kept so that a person can look at them.

An offer decides nothing: consent never reads this folder. The aggregator writes into it, so it holds few plans and no
long ones, each of which was read as a plan, has the digest that was named, and names this party. Whether one is kept
depends on plans and on room on the volume, never on a row, and changes nothing of what the aggregator is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fed_node.consent.approvals import Approvals
from fed_node.errors import NotApproved
from synth.errors import FedsynthError
from synth.plan import Plan

OFFERED = "offered"  # folder in the home
MOST_OFFERS = 20  # the newest
LARGEST_OFFER_BYTES = 1 << 20  # no plan that a person reads is longer


class Offers:
    """A folder of plans that wait for a person."""

    def __init__(self, folder: Path, party: str) -> None:
        self.folder, self.party, self.plans = folder, party, Approvals(folder)

    @contextmanager
    def kept_if_refused(self, plan: Plan) -> Iterator[None]:
        try:
            yield
        except NotApproved:
            with suppress(OSError, FedsynthError):  # a full volume must not change the refusal
                self._keep(plan)
            raise

    def _keep(self, plan: Plan) -> None:
        if self.party not in {member.name for member in plan.parties} or self.plans.has(plan.digest()):
            return
        if len(plan.model_dump_json(by_alias=True).encode()) > LARGEST_OFFER_BYTES:
            return
        self.plans.approve(plan)
        files = sorted(self.folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        for path in files[:-MOST_OFFERS]:
            path.unlink(missing_ok=True)
