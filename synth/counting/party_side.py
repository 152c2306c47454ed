"""What a party does with an ask for tables, whichever family asks: take no finer bins than the plan says, count its
rows, add its share of the noise."""

from __future__ import annotations

import numpy as np

from synth.counting.ownership import Sides
from synth.encoding.bins import Bins
from synth.encoding.cells import Cells
from synth.encoding.contingency import Clique
from synth.encoding.rows import Rows
from synth.errors import ProtocolError
from synth.interface import Array, Ask
from synth.messages.asked import Form, checked
from synth.plan import Plan
from synth.privacy.events import CountNoise
from synth.privacy.noise import NoiseSource
from synth.privacy.shares import share_of


def asked_bins(ask: Ask, cells: Cells, most: int) -> Bins:
    """The bins of an ask, of which a numeric column may have `most` beside the one for missing values."""
    bins = Bins(cells, checked(ask.arrays, "bins", Form((cells.size,), np.int64)))
    for name, column in cells.schema.numeric.items():
        if bins.size(name) > most + column.missing:
            raise ProtocolError(f"an ask cuts column '{name}' into more bins than the plan says")
    return bins


def tables_of(data: Rows, bins: Bins, names: list[str], cliques: list[Clique]) -> Array:
    """Exact counts of the tables, for `with_noise`; cliques are places in `names`."""
    return data.tables(bins, names, cliques)


def with_noise(
    counts: Array, plan: Plan, event: CountNoise | None, noise: NoiseSource, sides: Sides | None = None
) -> Array:
    """The party's summand, with its share of the noise that `event` charges; exact without privacy.

    Where tables have `sides`, the party's own get all of the noise here, and others' tables nothing of it."""
    if event is None:
        return counts
    if sides is None:
        return np.minimum(counts, plan.largest_count) + noise.child("counts").skellam(
            share_of(plan, event), len(counts)
        )
    own = noise.child("own").skellam(event.variance, len(counts))
    across = noise.child("across").skellam(share_of(plan, event), len(counts))
    return counts + sides.own * own + sides.across * across
