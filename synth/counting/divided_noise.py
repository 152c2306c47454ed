"""How a family on counts divides its budget over several releases of tables: a function of the plan alone, the same on
both sides."""

from __future__ import annotations

from synth.budget import set_aside, synthesis_share
from synth.plan import Plan
from synth.privacy.calibration import calibrate_count_variance, variance_for_share
from synth.privacy.events import CountNoise


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
