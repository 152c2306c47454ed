"""Holding what the parties signed against what their asks cost, and against each other.

A party charges every ask at its planned cost or refuses it, so what it signs for is a function of the plan and of the
asks it answered. Fewer events than these mean that something was released and not paid for, or that nothing was
released at all; then ε says nothing about the table.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING

from synth.certificate.participation import apart, covers
from synth.plan import Plan
from synth.privacy.events import Event, counted, from_dict
from synth.programme import costs

if TYPE_CHECKING:
    from synth.certificate.certificate import Statement

PRICED_OTHERWISE = frozenset({"0.1.0"})  # versions that counted each column once, and other pairs, for the same plan
TOLERANCE = 1e-6  # relative, between two computations of the same figure on two machines


def asked_digest(digests: Mapping[int, str]) -> str | None:
    """One digest over everything a party was asked and charged for, by number and content; None: nothing."""
    if not digests:
        return None
    return hashlib.sha256("".join(f"{number} {digests[number]}\n" for number in sorted(digests)).encode()).hexdigest()


def empty(statements: Iterable[Statement]) -> str | None:
    """Where a statement, or all of them together, account for nothing; None: nowhere."""
    statements = list(statements)
    for each in statements:
        if bool(each.events) != bool(each.asks):
            return f"'{each.party}' signed for asks without a cost, or for a cost without saying which asks"
    return None if any(each.events for each in statements) else "nobody signed for anything: nothing was released"


def priced_otherwise(statements: Sequence[Statement]) -> bool:
    """Whether all parties ran a version for which the same plan cost something else. One that says so alone is not
    believed: versions that count other things cannot have been added up."""
    return bool(statements) and all(each.code_version in PRICED_OTHERWISE for each in statements)


def cost_flaw(statements: Sequence[Statement], plan: Plan) -> str | None:
    """Where a party signed for other asks than the plan has, or for other events than they cost; None: nowhere. Events
    of a version that priced otherwise are not looked at."""
    comparable = not priced_otherwise(statements)
    if len({each.party for each in statements}) != len(statements):
        return "a party made two statements"
    for each in statements:
        planned = costs(plan, each.party)
        if any(not 0 <= first <= last < len(planned) for first, last in each.asks):
            return f"'{each.party}' signed for asks that the plan does not have"
        if not apart(each.asks):
            return f"'{each.party}' signed for an ask twice, or for its asks out of order"
        numbers = [number for first, last in each.asks for number in range(first, last + 1)]
        owed = [event for number in numbers for event in planned[number]]
        if comparable and not same_cost(map(from_dict, each.events), owed):
            return (
                f"'{each.party}' signed for other events than its asks cost by the plan "
                f"(it ran version {each.code_version})"
            )
    return None


def contradiction(statements: Sequence[Statement]) -> str | None:
    """Where parties were asked, or opened, different things under the same number; None: nowhere."""
    asked: dict[tuple[tuple[int, int], ...], dict[str, str]] = {}
    opened: dict[int, dict[str, str]] = {}
    for each in statements:
        if each.asked is not None:
            asked.setdefault(tuple(each.asks), {})[each.party] = each.asked
        asks = each.asks if apart(each.asks) else []
        for number, digest in each.opened.items():
            opened.setdefault(number, {})[each.party] = digest
            if not covers(asks, number, number):
                return f"'{each.party}' opened the sum of ask {number} and signed for no such ask"
    for told in asked.values():
        if len(set(told.values())) > 1:
            return f"{', '.join(sorted(told))} were asked different questions under the same numbers"
    for number, seen in sorted(opened.items()):
        if len(set(seen.values())) > 1:
            return f"{', '.join(sorted(seen))} opened different sums of ask {number}"
    return None


def same_cost(signed: Iterable[Event], owed: Iterable[Event]) -> bool:
    """The same events as often, whatever their order; steps of one mechanism count one by one."""
    left, right = (sorted(counted(events).items(), key=repr) for events in (signed, owed))
    return len(left) == len(right) and all(
        type(one) is type(other) and times == often and all(map(_close, astuple(one), astuple(other)))
        for (one, times), (other, often) in zip(left, right, strict=True)
    )


def _close(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=TOLERANCE)
    return one == other
