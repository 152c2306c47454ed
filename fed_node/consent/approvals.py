"""A party answers only what it approved, and a plan is approved by its digest: to the letter.

Approving stores the plan itself, so the party carries out its own copy; what the aggregator later sends is only ever
compared with it. A policy approves anew at every message: nothing that it approved outlives it. Each ask must be one of
those the plan consists of: in the planned order, no more of them, and combined as planned. What an ask may cost is the
ledger's affair, what it may contain the inquiry's.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from fed_node.consent.policy import Policy, violations
from fed_node.errors import AskOutsidePlan, NotApproved, PolicyRefused, StoreDamaged, StoreUnwritable
from synth.errors import PlanError
from synth.interface import Ask
from synth.messages.archive import write_durably
from synth.plan import Plan, parse_plan
from synth.programme import programme

DIGEST = re.compile(r"[0-9a-f]{64}")
LONGEST_PLAN = 1_000_000  # characters of a plan that the aggregator sends


class Approvals:
    """Plans in a folder, one file each, named by digest: those that a person approved.

    A second such folder holds what the aggregator sent of plans whose runs have begun under an approving policy. There
    a plan is a copy, to be taken up after a restart, and no approval.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def approve(self, plan: Plan) -> str:
        """Remember the plan durably; its digest."""
        digest = plan.digest()
        content = json.dumps(plan.model_dump(mode="json", by_alias=True), ensure_ascii=False, indent=1)
        write_durably(self._path(digest), content.encode())
        return digest

    def get(self, digest: str) -> Plan:
        """The approved plan, as it was approved."""
        try:
            plan = parse_plan(json.loads(self._path(digest).read_bytes()))
        except FileNotFoundError:
            raise NotApproved(
                f"no plan with digest {digest} was approved here; `fedsynth node approve PLAN` does that."
            ) from None
        except (PlanError, ValueError, OSError) as error:
            raise self._damaged(digest) from error
        if plan.digest() != digest:
            raise self._damaged(digest)
        return plan

    def has(self, digest: str) -> bool:
        return self._path(digest).exists()

    def digests(self) -> list[str]:
        return sorted(path.stem for path in self.folder.glob("*.json") if DIGEST.fullmatch(path.stem))

    def withdraw(self, digest: str) -> None:
        """Take an approval back; a run under way gets no further answer."""
        try:
            self._path(digest).unlink(missing_ok=True)
        except OSError as error:
            raise StoreUnwritable(f"cannot remove the approval of {digest}: {error.strerror}. Try again.") from error

    def _path(self, digest: str) -> Path:
        if not DIGEST.fullmatch(digest):
            raise NotApproved("a plan's digest is 64 hexadecimal digits; nothing else was ever approved.")
        return self.folder / f"{digest}.json"

    def _damaged(self, digest: str) -> StoreDamaged:
        return StoreDamaged(
            f"{self._path(digest)} is not the plan that was approved, or another version wrote it. Approve it again."
        )


def check_policy(policy: Policy, plan: Plan, party: str) -> None:
    """Refuse a plan that breaks the party's policy, naming every limit."""
    if broken := violations(policy, plan, party):
        raise PolicyRefused(f"plan '{plan.name}' breaks this party's policy: {'; '.join(broken)}.")


def sent_plan(digest: str, text: object) -> Plan:
    """The plan of that digest as the aggregator sent it, for a policy to judge."""
    if not isinstance(text, str) or len(text) > LONGEST_PLAN:
        raise NotApproved(f"no plan with digest {digest} was approved here; `fedsynth node approve PLAN` does that.")
    try:
        plan = parse_plan(json.loads(text))
    except (PlanError, ValueError, RecursionError):
        raise NotApproved("the plan that was sent cannot be read, so no policy can approve it.") from None
    if plan.digest() != digest:
        raise NotApproved("the plan that was sent is not the one its digest names.")
    return plan


def check_automatic(policy: Policy | None, plan: Plan) -> None:
    """Refuse a plan that no person approved, unless the policy says of its schema that none needs to."""
    if policy is None or not policy.covers(plan):
        raise NotApproved(f"plan '{plan.name}' waits for approval; run `fedsynth node approve PLAN`.")


def check_ask(plan: Plan, ask: Ask, sequence: int) -> None:
    """Refuse an ask that is none of the plan's; `sequence` counts all asks of the run from 0."""
    planned = programme(plan).step(sequence)
    if planned is None:
        raise AskOutsidePlan(f"ask {sequence} does not exist: the plan consists of {programme(plan).asks} asks.")
    if ask.options.get("phase") != planned.phase or ask.options.get("round", planned.number) != planned.number:
        raise AskOutsidePlan(
            f"ask {sequence} should be number {planned.number} of phase '{planned.phase}' and is not; the aggregator "
            "runs another plan."
        )
    if ask.combine != planned.combine:
        raise AskOutsidePlan(
            f"ask {sequence} would combine answers by '{ask.combine}'; the approved plan does not. Nobody's answer is "
            "shown alone that was planned to be summed."
        )
