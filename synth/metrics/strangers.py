"""Are the holdout rows strangers? Attacks and usefulness mean nothing when they were in the data themselves.

Some rows have twins by coincidence; how many, two halves of the real rows tell. A holdout row that is a real row is
found in the first half every second time, so what is found beyond coincidence is half of the overlap.
"""

from __future__ import annotations

import numpy as np

from synth.metrics.attacks.copies import row_keys
from synth.metrics.attacks.risk import exceeds
from synth.metrics.tables import Table

TOLERATED = 0.2
"""Overlap below which figures are only diluted. A holdout of other years, say, may have more twins than the halves."""


def why_no_strangers(real: Table, holdout: Table, seed: int) -> str | None:
    """What is wrong with the holdout, or None."""
    order, middle = np.random.default_rng(seed).permutation(real.rows), real.rows // 2
    first, second = set(row_keys(real.take(order[:middle]))), real.take(order[middle:])
    met, by_coincidence = (sum(key in first for key in row_keys(table)) for table in (holdout, second))
    natural = by_coincidence / second.rows
    overlap = 2.0 * (met / holdout.rows - natural) / (1.0 - natural) if natural < 1.0 else 0.0
    if overlap <= TOLERATED or not exceeds(met, holdout.rows, by_coincidence, second.rows):
        return None
    return (
        f"about {min(overlap, 1.0):.0%} of the holdout rows are rows of the real table; a holdout must be rows that "
        "the synthesizer never saw, or attacks and scores mean nothing: take those rows out, or leave the holdout out"
    )
