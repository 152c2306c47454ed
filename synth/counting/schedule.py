"""Which pairs are counted, with how much noise: a function of the plan alone, the same on both sides.

One release of q tables changes by one row in q cells, so its price depends on q only, never on bins or on which columns
were chosen.
"""

from __future__ import annotations

from itertools import combinations

from synth.budget import set_aside, synthesis_share
from synth.encoding.contingency import Clique
from synth.plan import Plan
from synth.privacy.calibration import calibrate_count_variance, variance_for_share
from synth.privacy.events import CountNoise


def candidate_pairs(columns: list[str], target: str | None, most: int) -> list[Clique]:
    """All pairs of columns; in a wide table the target's and those closest in the schema, which are most often kin."""
    aim = columns.index(target) if target in columns else -1
    pairs = sorted(combinations(range(len(columns)), 2), key=lambda pair: (aim not in pair, pair[1] - pair[0], pair))
    return sorted(pairs[:most])


def divided_noise(plan: Plan, columns: int, queries: list[int], shares: list[float]) -> list[CountNoise] | None:
    """The noise of releases of so many tables each; None without privacy. Shares are of the ρ that is left for the
    synthesizer; the last release gets all that the others leave."""
    if plan.privacy == "none":
        return None
    epsilon, delta, rest = plan.privacy.epsilon, plan.privacy.delta, synthesis_share(plan)
    beside = set_aside(plan, columns)
    events: list[CountNoise] = []
    for count, share in zip(queries[:-1], shares[:-1], strict=True):
        variance = variance_for_share(epsilon, delta, rest * share, count)
        events.append(CountNoise(count, variance, trust=beside[0].trust))
    variance = calibrate_count_variance(epsilon, delta, queries[-1], (*beside, *events))
    return [*events, CountNoise(queries[-1], variance, trust=beside[0].trust)]
