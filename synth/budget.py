"""How a plan's (ε, δ) is split: the statistics and the assessment get their shares, the synthesizer all the rest.

Both sides compute this from the plan alone. Shares are shares of ρ (zero-concentrated DP), the currency that adds up;
the rest is found by exact composition with what was set aside, so the split loses nothing.
"""

from __future__ import annotations

from typing import Literal

from synth.assessment import schedule
from synth.grid import twice_counted
from synth.plan import Plan
from synth.plan_sections import Privacy
from synth.privacy.calibration import epsilon_for_share, variance_for_share
from synth.privacy.events import CountNoise

ALIGNMENT_SHARE = 0.01  # of ρ, where rows are aligned: it hides a person among a hundred or so that do not exist


def statistics_event(plan: Plan, columns: int) -> CountNoise | None:
    """The histogram release over so many columns, some of them counted twice; None without privacy."""
    if plan.privacy == "none":
        return None
    privacy, queries = plan.privacy, (columns + twice_counted(plan)) * plan.records_per_unit
    variance = variance_for_share(privacy.epsilon, privacy.delta, privacy.statistics_share, queries)
    return CountNoise(queries, variance, trust=_trust(plan), about=plan.unit)


def assessment_events(plan: Plan) -> dict[str, CountNoise]:
    """The releases of the plan's assessment; {} where there is none, or no privacy."""
    if plan.privacy == "none" or plan.assessment is None:
        return {}
    epsilon, delta, trust = plan.privacy.epsilon, plan.privacy.delta, _trust(plan)
    found, shares = {}, schedule.parts(plan)
    for part, tables in schedule.queries(plan).items():
        count = tables * plan.records_per_unit
        variance = variance_for_share(epsilon, delta, plan.assessment.share * shares[part], count)
        found[part] = CountNoise(count, variance, trust=trust, about=plan.unit)
    return found


def alignment_event(plan: Plan) -> CountNoise | None:
    """How many people there are, by the parties they are at: one histogram, seen while rows are aligned."""
    if plan.privacy == "none" or plan.partition == "rows":
        return None
    variance = variance_for_share(plan.privacy.epsilon, plan.privacy.delta, ALIGNMENT_SHARE, 1)
    return CountNoise(1, variance, trust="local")


def set_aside(plan: Plan, columns: int) -> list[CountNoise]:
    """All that is released beside the synthesizer's own answers: it takes what these leave of (ε, δ)."""
    first = [event for event in (statistics_event(plan, columns), alignment_event(plan)) if event is not None]
    return [*first, *assessment_events(plan).values()]


def synthesis_share(plan: Plan) -> float:
    """The part of ρ that is left for the synthesizer."""
    statistics = 0.0 if plan.privacy == "none" else plan.privacy.statistics_share
    alignment = 0.0 if plan.partition == "rows" else ALIGNMENT_SHARE
    return 1 - statistics - alignment - (plan.assessment.share if plan.assessment else 0.0)


def cut_short(plan: Plan) -> Privacy | Literal["none"]:
    """The budget if the plan ended with the counts that its family asks for before it trains: the statistics as they
    are, and these counts. A function of the plan, to cut their noise by; what they cost together with the rest is
    composed from the events themselves."""
    if plan.privacy == "none":
        return "none"
    privacy, counted = plan.privacy, synthesis_share(plan) * plan.family.counted_share
    spent = privacy.statistics_share + counted
    epsilon = epsilon_for_share(privacy.epsilon, privacy.delta, spent)
    return privacy.model_copy(update={"epsilon": epsilon, "statistics_share": privacy.statistics_share / spent})


def _trust(plan: Plan) -> Literal["shared", "local"]:
    return "shared" if plan.shares_noise else "local"
