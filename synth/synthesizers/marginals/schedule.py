"""Which pairs are counted, with how much noise: a function of the plan alone, the same on both sides.

The first ask counts pairs; each further round counts some of them again. One release of q tables changes by one row in
q cells, so its price depends on q only, never on bins or on which columns were chosen.
"""

from __future__ import annotations

from itertools import combinations

from synth.budget import statistics_event
from synth.encoding.contingency import Clique
from synth.plan import Plan
from synth.privacy.calibration import calibrate_count_variance, variance_for_share
from synth.privacy.events import CountNoise
from synth.synthesizers.marginals.settings import MarginalsSettings


def candidate_pairs(columns: list[str], target: str | None, most: int) -> list[Clique]:
    """All pairs of columns; in a wide table the target's and those closest in the schema, which are most often kin."""
    aim = columns.index(target) if target in columns else -1
    pairs = sorted(combinations(range(len(columns)), 2), key=lambda pair: (aim not in pair, pair[1] - pair[0], pair))
    return sorted(pairs[:most])


def planned_noise(plan: Plan, settings: MarginalsSettings, columns: int, pairs: int) -> list[CountNoise] | None:
    """The noise of every ask; None without privacy. The last ask gets all that the others leave."""
    statistics = statistics_event(plan, columns)
    if plan.privacy == "none" or statistics is None:
        return None
    epsilon, delta, rest = plan.privacy.epsilon, plan.privacy.delta, 1 - plan.privacy.statistics_share
    queries = [pairs] + [min(settings.round_pairs, pairs)] * settings.rounds
    events = [statistics]
    for number, count in enumerate(queries[:-1]):
        share = settings.first_share if number == 0 else (1 - settings.first_share) / settings.rounds
        variance = variance_for_share(epsilon, delta, rest * share, count)
        events.append(CountNoise(count, variance, trust=statistics.trust))
    variance = calibrate_count_variance(epsilon, delta, queries[-1], tuple(events))
    return [*events[1:], CountNoise(queries[-1], variance, trust=statistics.trust)]
