"""How much of which mechanism: a multiset of events that can be added, compared and written down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from synth.privacy.events import Event, counted

Tally = Counter[Event]  # what an event counts as is its own affair: steps count one by one


def tally_of(events: Iterable[Event]) -> Tally:
    return counted(events)


def events_of(tally: Tally) -> list[Event]:
    """The shortest list with this tally, always in the same order."""
    return [event for one in sorted(tally, key=repr) for event in one.repeated(tally[one])]
