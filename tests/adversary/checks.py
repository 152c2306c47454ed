"""Checks of promises that are not about messages: policy, lifetime, certificates, declarations."""

from __future__ import annotations

from pathlib import Path

from fed_node.consent.policy import Policy, violations
from fed_node.ledger.book import Budget
from fed_node.ledger.ledger import Ledger
from synth.errors import BudgetError
from synth.plan import parse_plan
from synth.privacy.events import CountNoise
from synth.programme import programme
from synth.synthesizers.registry import build
from tests.adversary.consortium import plans
from tests.small import plan_of

PLAN = CountNoise(10, 4000.0)  # ε about 0.25 at δ = 1e-6


def a_careless_plan_is_allowed(_: Path) -> bool:
    """Under automatic approval the aggregator chooses how many colluders the noise withstands."""
    content = plans()[0].model_dump(mode="json", by_alias=True)
    careless = parse_plan(content | {"secure_sum": content["secure_sum"] | {"colluders": 0}})
    policy = Policy(
        maximum_epsilon_per_run=2, maximum_epsilon_in_total=5, maximum_delta=1e-3, minimum_rows=10, minimum_parties=2
    )
    return not violations(policy, careless, "east")


def a_lifetime_is_overspent(folder: Path) -> bool:
    """A budget that pays for ten plans if they had been fixed beforehand, but not if each is chosen in view of the
    last."""
    from synth.privacy.accounting import compose

    folder.mkdir(parents=True)
    budget = Budget(compose([PLAN] * 10, 1e-6).epsilon * 1.01, 1e-6)
    ledger = Ledger(folder / "ledger.sqlite", "rows", budget)
    try:
        for number in range(10):
            ledger.reserve(f"run-{number}", f"{number}" * 64, [PLAN], automatic=True)
    except BudgetError:
        return False
    finally:
        ledger.close()
    return True


def a_programme_is_untrue(_: Path) -> bool:
    """Without privacy `marginals` asks once; its certificate must not be held against two asks."""
    plan = plan_of({"name": "marginals"}, privacy="none")
    return programme(plan).asks != 1 + len(build(plan).planned_costs("party-1"))
