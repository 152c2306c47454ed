"""How much of which mechanism: a multiset of events that can be added, compared and written down.

Steps of one sampled Gaussian add up, whatever the asks they were spread over, so they are counted as single steps.
Every other event counts as itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from synth.privacy.events import Event, SampledGaussian

Tally = Counter[Event]  # a SampledGaussian is held with steps = 1, its count is the number of steps


def tally_of(events: Iterable[Event]) -> Tally:
    tally: Tally = Counter()
    for event in events:
        if isinstance(event, SampledGaussian):
            tally[replace(event, steps=1)] += event.steps
        else:
            tally[event] += 1
    return tally


def events_of(tally: Tally) -> list[Event]:
    """The shortest list with this tally, always in the same order."""
    events: list[Event] = []
    for event in sorted(tally, key=repr):
        count = tally[event]
        if isinstance(event, SampledGaussian):
            events.append(replace(event, steps=count))
        else:
            events += [event] * count
    return events
