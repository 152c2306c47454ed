"""Bins worth counting: as fine as the noise of the tables to come allows, apart where the plan's constraints demand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from synth.counting import possible
from synth.encoding.bins import BinLimits, Bins, refine
from synth.plan import Plan
from synth.privacy.events import CountNoise
from synth.privacy.shares import summed_variance
from synth.statistics.histograms import Statistics

BIN_SIGMAS = 4.0  # rows that a bin should hold, in standard deviations of the noise of one count
BINS = 1.2  # of a number: so many times the cube root of the rows in standard deviations of one count
FEWEST_BINS = 4
LABEL_SIGMAS = 1.0  # the same for a label with a bin to itself


def bins_worth_counting(
    plan: Plan, statistics: Statistics, noise: Sequence[CountNoise], most_bins: int, most_labels: int
) -> Bins:
    """Bins for tables counted with all of this noise; the target's classes never merge."""
    precision = sum(1 / summed_variance(plan, event) for event in noise)
    sigma = precision**-0.5 if precision else 0.0  # of a count in a table, all asks together
    if sigma:
        most_bins = min(most_bins, max(round(BINS * (plan.declared_rows / sigma) ** (1 / 3)), FEWEST_BINS))
    limits = BinLimits(most_bins, most_labels, BIN_SIGMAS * sigma, LABEL_SIGMAS * sigma)
    cells, counts = statistics.finest
    apart = possible.labels_apart(plan.constraints, cells)
    if (target := plan.modelled.target) in plan.modelled.discrete:
        apart[target] = np.arange(len(cells.split(counts)[target]))
    return refine(cells, counts, statistics.variance**0.5, limits, apart)
