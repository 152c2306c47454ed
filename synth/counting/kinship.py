"""Which columns of a sequence's record have to do with each other: a function of the plan alone.

A record of 24 steps has so many pairs of columns that all of them together would be noise. Time says which matter: what
happens at one step, what becomes of it at the next, and what the entity is like.
"""

from __future__ import annotations

from synth.layout import Layout


def are_kin(layout: Layout, first: str, second: str) -> bool:
    """Within a step, one column at two neighbouring steps, and whatever is said of the whole entity (static columns,
    means, length, target) with everything."""
    (one, step), (other, later) = layout.place(first), layout.place(second)
    if 0 in (step, later):
        return True
    if layout.is_series:  # a step's own columns, and what becomes of each
        return one == other if step != later else step == 1
    return step == later or (one == other and abs(step - later) == 1)
