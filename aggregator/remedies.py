"""What to do about a run that failed, by the code it failed with. Codes are those of docs/refusals.md."""

from __future__ import annotations

from aggregator.states import Reason
from synth.errors import FedsynthError, Refusal

AWAY_WORDS = {  # refusals of a party's machine, not of its administrator: asked again, they may answer; no row decides
    "store-unwritable": "its volume is full or cannot be written",
    "cannot-write": "its volume is full or cannot be written",
    "store-failed": "its volume fails",
    "worker-away": "its worker does not answer",
}
AWAY = frozenset(AWAY_WORDS)

_REMEDIES = {
    "plan-not-approved": "Its administrator approves the plan (`fedsynth node approve`)",
    "policy-refused": "Its policy forbids this plan: change the plan, or let its administrator change the policy",
    "budget-exceeded": "Its budget does not cover the plan: a cheaper plan, or a budget raised at the party",
    "peer-not-pinned": "It installs the newest kit, which names every party, and compares fingerprints",
    "data-does-not-fit-schema": "Its administrator runs `fedsynth node check-data`",
    "ledger-rolled-back": "Its administrator does the restore drill of the party guide",
    "peer-rolled-back": "The other party does the restore drill of the party guide; its own log names it",
    "store-damaged": "Its administrator restores the volume as a whole, or the plan is started under another name",
    "already-confirmed": "The parties of the sum that was confirmed must all be back",
    "run-finished": "The run has ended there: give the plan another name and have it approved",
    "not-reserved": "Its administrator approves the plan again",
    "missing-parties": "Start their nodes (each party's `kubectl get pods`, `helm test fed-node`)",
    "cannot-write": "Make room on the aggregator's volume",
    "parties-disagree": "Install one version everywhere",
}


def reason_of(error: FedsynthError, plan: str) -> Reason:
    """A failure in words: what, and what to do before the run is resumed."""
    known = _REMEDIES.get(error.code)
    whose = f"at '{error.party}': " if isinstance(error, Refusal) and known else ""
    remedy = f"{whose}{known}, then `fedsynth resume {plan}`." if known else ""
    return Reason(error.code, str(error), remedy)
