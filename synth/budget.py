"""How a plan's (ε, δ) is split: the statistics get a share, the synthesizer all the rest.

Both sides compute this from the plan alone. Shares are shares of ρ (zero-concentrated DP), the currency that adds up;
the rest is found by exact composition with the statistics, so the split loses nothing.
"""

from __future__ import annotations

from synth.plan import Plan
from synth.privacy.calibration import variance_for_share
from synth.privacy.events import CountNoise


def statistics_event(plan: Plan, queries: int) -> CountNoise | None:
    """The one histogram release over `queries` columns; None without privacy."""
    if plan.privacy == "none":
        return None
    privacy = plan.privacy
    variance = variance_for_share(privacy.epsilon, privacy.delta, privacy.statistics_share, queries)
    return CountNoise(queries, variance, trust="shared" if plan.shares_noise else "local")


def share_of(plan: Plan, event: CountNoise) -> float:
    """The variance one party adds to each count so that the parties sure to be honest and present add it all."""
    return event.variance / plan.noisy_parties


def summed_variance(plan: Plan, event: CountNoise) -> float:
    """The variance in the opened sum when every party of the plan has answered."""
    return share_of(plan, event) * len(plan.parties)
