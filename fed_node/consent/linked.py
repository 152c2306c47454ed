"""A plan by columns in plain words: what a party's columns leave as, and which of the others would have to conspire."""

from __future__ import annotations

from synth.certificate.linkage import dealers_in_words
from synth.linkage.settings import NOBODY_DEALS
from synth.plan import Plan
from synth.printable import quoted


def by_columns(plan: Plan, party: str) -> list[str]:
    """Lines for the approval screen; none under a plan by rows."""
    if plan.linkage is None:
        return []
    if party not in plan.holders:
        held = "  You hold no columns: no rows of yours are read."
        if plan.linkage.dealer is None:
            held += " You deal random numbers for the others, whose rows are safe while you tell nobody the seeds that "
            held += "they send you."
        return [held, f"  {dealers_in_words(plan)}"]
    others = [name for name in plan.holders if name != party]
    return [
        f"  The same people are at {', '.join(others)}, who hold other columns. All parties must stay: a lost one "
        "stops the run.",
        f"  Your columns leave only as shares: {_shares(plan, others)}, and sums with noise to everybody.",
        *_critics(plan),
        f"  {dealers_in_words(plan)}",
        f"  The key {quoted(plan.linkage.key)} is read to find whose row is whose; it never leaves.",
    ]


def _shares(plan: Plan, others: list[str]) -> str:
    if plan.linkage is not None and plan.linkage.dealer == NOBODY_DEALS:
        return f"rows encrypted under your key, or sums over rows under masks, to {', '.join(others)}"
    return f"rows under masks to {', '.join(others)}, who lack the seeds"


def _critics(plan: Plan) -> list[str]:
    """What is trained at a party beside counting, if anything is."""
    if plan.family.answers == "counts":
        return []
    return ["  A critic of your columns is trained here, with all of its noise, and stays; how it judges rows leaves."]


def leaving_to_align(plan: Plan, party: str) -> str:
    if plan.linkage is None or party not in plan.holders:
        return "nothing of yours: the others find out whose row is whose"
    if plan.linkage.alignment == "presorted":
        return "how many people there are, with noise, and digests of their order that only the other parties can check"
    return (
        "keyed hashes of your people among hashes of people that do not exist (the aggregator lacks the key; a party "
        "that conspires with it has it), and digests of their order. The other parties learn who is at all of you"
    )
