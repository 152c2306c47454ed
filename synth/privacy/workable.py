"""Which events of strangers are worth composing at all.

A composition takes seconds for the few mechanisms of a plan, but hours for hundreds of different ones, and for some
numbers it never ends: noise of a million times the influence of a row made the accountant search for ever and then call
the loss zero. Whoever checks another one's statement first asks here. The limits are far from any plan that was run:
a plan has at most six different mechanisms.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict

from synth.privacy.events import Event

MOST_MECHANISMS = 16  # different ones; each may take a second
RANGES = {
    "noise_multiplier": (1e-2, 1e4),
    "sample_rate": (1e-7, 1.0),
    "steps": (1, 10**7),
    "queries": (1, 10**7),
    "variance": (1e-6, 1e9),
    "scale_over_sensitivity": (1e-3, 1e6),
}
DELTAS = (1e-20, 0.5)


def unworkable(events: Iterable[Event], known: Collection[Event] = ()) -> str | None:
    """Why these are not composed, in words; None: they can be. `known`: mechanisms that were composed before."""
    different = {event.units()[0] for event in events} - set(known)
    if len(different) > MOST_MECHANISMS:
        return f"there are {len(different)} different mechanisms, and at most {MOST_MECHANISMS} are composed"
    for event in different:
        for name, value in asdict(event).items():
            low, high = RANGES.get(name, (None, None))
            if low is not None and high is not None and not low <= value <= high:
                return f"{event.kind}: {name} lies outside of what is composed ({low:g} to {high:g})"
    for event in events:
        unit, times = event.units()
        if unit in different and times > RANGES["steps"][1]:
            return f"{event.kind}: it is repeated more often than is composed"
    return None
