"""Federated Bayesian networks (FedBN, TU Wien 2024) behind the interface, in two forms.

`search: tables` is the rigorous default, `search: islands` the published protocol, possible only under
`profile: faithful`: it shows the aggregator networks that exact counts chose.
"""

from __future__ import annotations

from synth.errors import PlanError
from synth.plan import Plan
from synth.synthesizers.bayes.base import BayesBase
from synth.synthesizers.bayes.islands import IslandSearch
from synth.synthesizers.bayes.released import ReleasedSearch
from synth.synthesizers.bayes.settings import BayesSettings


def bayes(plan: Plan) -> BayesBase:
    settings = plan.synthesizer
    if not isinstance(settings, BayesSettings):
        raise PlanError(f"the plan's synthesizer is '{settings.name}', not 'bayes'; build it from its own settings")
    if (settings.search == "islands") != (plan.profile == "faithful"):
        raise PlanError(
            "synthesizer.search 'islands' (preset 'published') shows what exact counts say about the structure, so it "
            "goes with profile 'faithful' and with no other; use both or neither."
        )
    return IslandSearch(plan, settings) if settings.search == "islands" else ReleasedSearch(plan, settings)
