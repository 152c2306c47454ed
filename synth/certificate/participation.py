"""Whose answers are in which sums, and who was lost on the way.

A plan may go on without a party (secure_sum.minimum_parties). Then sums hold fewer rows and less noise than planned,
never less than the promise needs; and the lost party may have charged its ledger without ever saying so. Both stand in
the certificate: every sum with its parties and the noise that is really in it, and for a party that made no statement
the most that it can have spent, which is all that was set aside for the plan.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from pydantic import Field

from synth.plan import Plan
from synth.programme import programme
from synth.schema import Strict

Span = tuple[int, int]  # first and last of neighbouring asks


class Participation(Strict):
    """Neighbouring asks whose sums were formed alike."""

    phase: str = Field(description="What they were about: a phase of the plan's programme.")
    first: int = Field(ge=0, description="The first of them, counted over the whole run from 0.")
    last: int = Field(ge=0, description="The last of them.")
    parties: list[str] = Field(description="Whose answers are in these sums.")
    count_variance: list[float] = Field(
        [], description="Variance of the noise in each count of these sums, by mechanism; empty for model updates."
    )


class Absent(Strict):
    """A party that made no statement."""

    party: str = Field(description="Who was lost.")
    missing_from: int = Field(description="The first ask whose sum is without its answer.")
    at_most: list[dict[str, Any]] = Field(description="What it may have charged: all that the plan can ever cost it.")


def joined(spans: Sequence[Participation], more: Participation) -> list[Participation]:
    """One ask more; it lengthens the last span where it is like it."""
    if not spans:
        return [more]
    *before, last = spans
    alike = (last.phase, last.parties, last.count_variance) == (more.phase, more.parties, more.count_variance)
    if alike and more.first == last.last + 1:
        return [*before, last.model_copy(update={"last": more.last})]
    return [*spans, more]


def spans_of(numbers: Iterable[int]) -> list[Span]:
    """Neighbouring numbers together."""
    spans: list[Span] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], number)
        else:
            spans.append((number, number))
    return spans


def first_missing(spans: Iterable[Participation], party: str) -> int:
    return next((span.first for span in spans if party not in span.parties), 0)


def apart(spans: Sequence[Span]) -> bool:
    """Whether each begins after the one before it has ended, and none is negative: then they can be searched."""
    return all(0 <= first <= last for first, last in spans) and all(
        before[1] < after[0] for before, after in pairwise(spans)
    )


def covers(spans: Sequence[Span], first: int, last: int) -> bool:
    """Whether one of these, which are apart, holds all of first to last."""
    place = bisect_right(spans, first, key=lambda span: span[0]) - 1
    return place >= 0 and last <= spans[place][1]


def _in_order(spans: Sequence[Participation]) -> bool:
    """From the first ask on, each where the one before it ended."""
    expected = [0, *(span.last + 1 for span in spans)][: len(spans)]
    return all(span.first <= span.last for span in spans) and [span.first for span in spans] == expected


def flaw(
    spans: Sequence[Participation], absent: Sequence[Absent], stated: Mapping[str, Sequence[Span]], minimum: int
) -> str | None:
    """Where sums, lost parties and the asks that parties signed for contradict each other; None: nowhere."""
    lost = [each.party for each in absent]
    if len(set(lost)) != len(lost) or set(lost) & set(stated):
        return "a party is said to be lost twice, or to be lost and to have made a statement"
    if any(not each.at_most for each in absent):
        return "a party is said to be lost, and nothing is counted for it"
    if not _in_order(spans):
        return "the sums are not in order, from the first ask on"
    for party, asks in stated.items():
        if not apart(asks):
            return f"'{party}' signed for an ask twice, or for its asks out of order"
    for span in spans:
        if len(set(span.parties)) < max(minimum, 1) or len(set(span.parties)) != len(span.parties):
            return f"the sum of ask {span.first} is over fewer than {minimum} parties, or over one twice"
        for party in span.parties:
            if party not in stated and party not in lost:
                return f"'{party}' is in the sum of ask {span.first} and nobody accounts for it"
            if party in stated and not covers(stated[party], span.first, span.last):
                return f"'{party}' signed for other asks than those whose sums it is in"
    return None


def against_plan(
    spans: Sequence[Participation], absent: Sequence[Absent], stated: Iterable[str], plan: Plan
) -> str | None:
    """Where the plan says otherwise; None: nowhere."""
    planned = programme(plan)
    steps = list(planned)  # a plan bounds how many
    whole = bool(spans) and _in_order(spans) and spans[-1].last + 1 == planned.asks
    if not whole or any(step.phase != span.phase for span in spans for step in steps[span.first : span.last + 1]):
        return "the sums are not those of the plan's asks, each once and in order"
    if {*stated, *(each.party for each in absent)} != {party.name for party in plan.parties}:
        return "a party of the plan neither made a statement nor is said to be lost"
    return None


def in_words(spans: Sequence[Participation], absent: Sequence[Absent]) -> str:
    """Who was in which sums, where that was not everybody; empty if it was."""
    everybody = {party for span in spans for party in span.parties} | {each.party for each in absent}
    short = [span for span in spans if set(span.parties) != everybody]
    if not short:
        return ""
    parts = [
        f"{'ask' if span.first == span.last else 'asks'} {span.first}"
        + (f" to {span.last}" if span.last > span.first else "")
        + f" without {', '.join(sorted(everybody - set(span.parties)))}"
        for span in short
    ]
    return f"Sums were formed without some parties: {'; '.join(parts)}."
