"""Plans: the defaults are the safe ones, and what is unsound is refused with the remedy."""

from __future__ import annotations

from typing import Any

import pytest

from synth.errors import PlanError
from synth.plan import parse_plan
from tests.small import plan_content, plan_of

CTGAN = {"name": "ctgan"}


def test_the_defaults_are_the_safe_ones() -> None:
    plan = plan_of(CTGAN)
    assert plan.profile == "rigorous"
    assert plan.secure_sum.statistics == "ckks"
    assert plan.secure_sum.updates == "masked"
    assert plan.minimum_parties == len(plan.parties) == 3
    assert plan.noisy_parties == 2  # one colluder is tolerated
    assert sum(plan.share(party.name) for party in plan.parties) == pytest.approx(1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"privacy": {"epsilon": 0, "delta": 1e-5}}, "epsilon.*greater than 0"),
        ({"privacy": {"epsilon": -1, "delta": 1e-5}}, "epsilon.*greater than 0"),
        ({"privacy": {"epsilon": 1, "delta": 0.01}}, "not below 1/rows"),
        ({"privacy": {"epsilon": 1, "delta": 1e-5, "epsilom": 2}}, "unknown key"),
        ({"privacy": "nothing"}, "privacy"),
        ({"colour": 1}, "plan, colour: unknown key"),
        ({"synthesizer": {"name": "gpt"}}, "synthesizer"),
        ({"synthesizer": {"name": "ctgan", "roundz": 1}}, "unknown key"),
        ({"secure_sum": {"minimum_parties": 9}}, "more than the 3 parties"),
        ({"secure_sum": {"minimum_parties": 1}}, "hides nothing"),
        ({"secure_sum": {"colluders": 3}}, "must be fewer"),
        ({"secure_sum": {"statistics": "plain"}}, "share of the noise"),
        ({"secure_sum": {"updates": "plain"}}, "share of the noise"),
        ({"parties": [{"name": "a", "rows": 10}, {"name": "a", "rows": 10}]}, "distinct"),
        ({"parties": [{"name": "A b", "rows": 10}]}, "parties.0.name"),
        ({"output": {"rows": 0}}, "output.rows"),
    ],
)
def test_mistakes_are_named(change: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        parse_plan(plan_content(CTGAN) | change)


def test_one_party_must_say_that_there_is_nobody_to_hide_among() -> None:
    with pytest.raises(PlanError, match="one party"):
        plan_of(CTGAN, parties=1)
    alone = plan_of(CTGAN, parties=1, secure_sum={"statistics": "plain", "updates": "plain", "colluders": 0})
    assert not alone.shares_noise
    assert alone.noisy_parties == 1


def test_dropouts_and_colluders_both_thin_the_noise_that_is_counted_on() -> None:
    plan = plan_of(CTGAN, parties=5, secure_sum={"minimum_parties": 4, "colluders": 2})
    assert plan.noisy_parties == 2
    local = plan_of(CTGAN, parties=5, privacy={"epsilon": 1, "delta": 1e-5, "noise": "local"})
    assert local.noisy_parties == 1


def test_the_digest_follows_everything_in_the_plan() -> None:
    plan = plan_of(CTGAN)
    assert plan.digest() == parse_plan(plan.model_dump(mode="json", by_alias=True)).digest()
    assert plan.digest() != plan_of(CTGAN, privacy={"epsilon": 3.0, "delta": 2e-5}).digest()
    assert plan.digest() != plan_of(CTGAN, rows=201).digest()
