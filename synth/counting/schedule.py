"""Which pairs are counted, with how much noise: a function of the plan alone, the same on both sides.

One release of q tables changes by one row in q cells, so its price depends on q only, never on bins or on which columns
were chosen.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import combinations
from math import sqrt

from synth.budget import set_aside, synthesis_share
from synth.counting.kinship import are_kin
from synth.encoding.contingency import Clique
from synth.plan import Plan
from synth.privacy.calibration import calibrate_count_variance, gaussian_sigma, variance_for_share
from synth.privacy.events import CountNoise

MANY = 4  # the target's pairs are many if this many times as many were more than the plan counts
SERIES_PRECISION = 4  # tables of what becomes of a step should be so many times as precise as others must be
ROWS_PER_SIGMA = 100.0  # a table's rows should be so many times the noise of one count


def candidate_pairs(plan: Plan, columns: list[str], most: int, first_share: float) -> list[Clique]:
    """All pairs of columns; in a wide table the target's and those closest in the schema, which are most often kin.

    Every pair more is noise in all the others. So where rows are few, only as many pairs as they bear are counted, the
    target's first; and where the target's pairs alone are many, no others."""
    target = plan.modelled.target
    aim = columns.index(target) if target in columns else -1
    pairs: list[Clique] = list(combinations(range(len(columns)), 2))
    if plan.layout is not None and plan.layout.steps > 1:
        pairs = [pair for pair in pairs if are_kin(plan.layout, columns[pair[0]], columns[pair[1]])]
    pairs.sort(key=lambda pair: (aim not in pair, pair[1] - pair[0], pair))
    aimed = 0 if aim < 0 else len(columns) - 1
    if plan.layout is not None and plan.layout.is_series:
        return _of_a_series(plan, columns, pairs, most, first_share)
    if aimed:
        most = aimed if aimed * MANY > most else min(most, max(aimed, _borne_pairs(plan, first_share)))
    return sorted(pairs[:most])


def _of_a_series(plan: Plan, columns: list[str], pairs: list[Clique], most: int, share: float) -> list[Clique]:
    """What becomes of every column from one step to the next; what columns have to do with each other within a step
    only where that is far from costing the first its precision."""
    assert plan.layout is not None
    steps = [plan.layout.place(name)[1] for name in columns]
    onwards = [pair for pair in pairs if steps[pair[0]] != steps[pair[1]]]
    within = [pair for pair in pairs if pair not in onwards]
    room = min(most, _borne_pairs(plan, share) // SERIES_PRECISION**2)
    return sorted([*onwards, *within[: max(room - len(onwards), 0)]])


def pairs_again(columns: int, pairs: int, most: int, again: int) -> int:
    """How many of so many pairs a further round counts: `again`, but all where they are only the target's, and many
    beside the `most` that the plan counts at first."""
    return pairs if (columns - 1) * MANY > most else min(again, pairs)


def _borne_pairs(plan: Plan, share: float) -> int:
    """So many tables, counted with this share of the synthesizer's ρ, have little enough noise for the plan's rows."""
    if plan.privacy == "none":
        return sys.maxsize
    spent = synthesis_share(plan) * share * plan.noisy_parties / len(plan.parties)
    sigma = gaussian_sigma(plan.privacy.epsilon, plan.privacy.delta) / sqrt(spent)  # of the counts of one table
    sigma *= plan.records_per_unit
    return int((plan.declared_rows / (ROWS_PER_SIGMA * sigma)) ** 2)


def divided_noise(plan: Plan, columns: int, queries: list[int], shares: list[float]) -> list[CountNoise] | None:
    """The noise of releases of so many tables each; None without privacy. Shares are of the ρ that is left for the
    synthesizer; the last release gets all that the others leave."""
    if plan.privacy == "none":
        return None
    epsilon, delta, rest = plan.privacy.epsilon, plan.privacy.delta, synthesis_share(plan)
    beside = set_aside(plan, columns)
    events: list[CountNoise] = []
    *first, last = [tables * plan.records_per_unit for tables in queries]
    for count, share in zip(first, shares[:-1], strict=True):
        variance = variance_for_share(epsilon, delta, rest * share, count)
        events.append(replace(beside[0], queries=count, variance=variance))
    variance = calibrate_count_variance(epsilon, delta, last, (*beside, *events))
    return [*events, replace(beside[0], queries=last, variance=variance)]
