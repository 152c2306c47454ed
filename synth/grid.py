"""The grid of a plan's statistics, from the plan alone: fine cells, and groups of them as large as the noise asks for.

A group's count has the same noise as a cell's, so groups should hold a few times as many rows as that noise hides: as
many groups as there are coarse cells in a table of 30,000 rows, eight in one of 1,000 (all at ε = 1).
"""

from __future__ import annotations

from math import log2, sqrt

from synth.encoding.cells import FEWEST_BINS, Cells
from synth.encoding.fine_cells import FineCells
from synth.plan import Plan
from synth.privacy.calibration import gaussian_sigma

GROUP_SIGMAS = 2.0  # rows that a group should hold, in standard deviations of the noise of one count


def grid_of(plan: Plan) -> FineCells:
    """What the parties count first. Without privacy nothing is counted twice."""
    coarse = Cells(plan.modelled, plan.statistics.bins)
    return FineCells(coarse, None if plan.privacy == "none" else _groups(plan))


def table_grid(plan: Plan) -> FineCells:
    """The same cells for the columns of the table as it is written, of which a record may hold several rows."""
    return FineCells(Cells(plan.table, plan.statistics.bins), None)


def twice_counted(plan: Plan) -> int:
    """Histograms beyond one a column: fine cells are also counted in groups, dates also by weekday."""
    return grid_of(plan).counted_again


def _groups(plan: Plan) -> int:
    """A half, a quarter, … of the coarse cells; in such steps, because two machines must find the same number."""
    if plan.privacy == "none":
        return plan.statistics.bins
    share = plan.privacy.statistics_share * plan.noisy_parties / len(plan.parties)
    sigma = gaussian_sigma(plan.privacy.epsilon, plan.privacy.delta) * sqrt(len(plan.modelled.released) / share)
    sigma *= plan.records_per_unit
    wanted = max(plan.declared_rows / (GROUP_SIGMAS * sigma), 1.0)
    bins = plan.statistics.bins
    halvings = max(0, -int(log2(wanted / bins) // 1))
    return int(max(bins // 2**halvings, FEWEST_BINS))
