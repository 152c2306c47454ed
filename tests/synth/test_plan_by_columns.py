"""Plans by columns: what they say, and every way in which they cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from fed_node.consent.description import describe
from fed_node.consent.policy import Policy, violations
from synth.errors import PlanError
from synth.linkage.pairs import dealer_of
from synth.plan import parse_plan
from synth.programme import programme
from tests.small import plan_of
from tests.vertical import AGGREGATOR_DEALS, COLUMNS, NOTARY, TWO, content_by_columns, plan_by_columns


def test_people_are_not_multiplied_by_parties() -> None:
    plan = plan_by_columns(COLUMNS, 300)
    assert plan.declared_rows == plan.rows == 300
    assert plan_by_columns(COLUMNS, 300, privacy={"epsilon": 1, "delta": 1 / 400}).rows == 300  # below 1 / people
    assert sum(plan.share(party.name) for party in plan.parties) == pytest.approx(1)
    assert [stage.phase for stage in programme(plan).stages] == ["alignment", "statistics", "training"]


def test_a_notary_declares_rows_that_count_for_nothing() -> None:
    content = content_by_columns(NOTARY, 300)
    content["parties"][2]["rows"] = 10**6
    assert parse_plan(content | {"privacy": "none"}).declared_rows == 300


def test_a_party_outside_the_pair_deals_and_one_without_columns_first() -> None:
    assert dealer_of(plan_by_columns(COLUMNS), ("hospital", "registry")) == "insurer"
    assert dealer_of(plan_by_columns(NOTARY), ("hospital", "insurer")) == "notary"
    assert dealer_of(plan_by_columns(TWO, **AGGREGATOR_DEALS), ("hospital", "insurer")) == "aggregator"


def test_without_a_dealer_as_many_may_collude_as_leave_somebody() -> None:
    alone = plan_by_columns(TWO, linkage={"dealer": "none"})
    assert alone.secure_sum.colluders == 1
    assert plan_by_columns(COLUMNS, linkage={"dealer": "none"}, secure_sum={"colluders": 2}).noisy_parties == 1
    assert "Nobody dealt" in " ".join(describe(alone, "insurer").split())
    assert "no coalition" in " ".join(describe(alone, "insurer").split())


def test_plans_by_rows_say_nothing_of_it() -> None:
    dumped = plan_of({"name": "marginals"}).model_dump(mode="json", by_alias=True)
    assert not {"partition", "linkage"} & set(dumped)
    assert "columns" not in dumped["parties"][0]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no section": ({"linkage": None}, "needs a 'linkage' section"),
    "key unknown": ({"linkage": {"key": "passport"}}, "must be a column of kind 'identifier'"),
    "key released": ({"linkage": {"key": "age"}}, "must be a column of kind 'identifier'"),
    "network": ({"synthesizer": {"name": "ctgan"}}, "use 'marginals' or 'bayes'"),
    "faithful": ({"profile": "faithful"}, "leave the profile 'rigorous'"),
    "a gate on predictions": (
        {"assessment": {"share": 0.1}, "gate": {"minimum_auroc": 0.8}},
        "gate.minimum_auroc is about whole rows, which nobody has",
    ),
    "a gate on copies": (
        {"assessment": {"share": 0.1}, "gate": {"maximum_tvd_two_way": 0.2, "maximum_copy_share": 0.1}},
        "gate.maximum_copy_share is about whole rows, .* by maximum_tvd_one_way and maximum_tvd_two_way",
    ),
    "losses": ({"secure_sum": {"minimum_parties": 2}}, "nobody can be spared"),
    "two colluders": ({"secure_sum": {"colluders": 2}}, "colluders is 1 at most"),
    "plain": ({"secure_sum": {"updates": "plain"}, "privacy": "none"}, "must not lie open"),
    "aggregator deals": ({"linkage": {"key": "patient", "dealer": "aggregator"}}, "secure_sum.colluders 0"),
}


SEQUENCE = {"entity": "patient", "time": "age", "length": 4}


@pytest.mark.parametrize("about", [{"subject": "patient"}, {"sequence": SEQUENCE}])
def test_people_with_several_rows_and_sequences_are_refused_with_a_remedy(about: dict[str, Any]) -> None:
    content = content_by_columns()
    with pytest.raises(PlanError, match=r"one row a person at each party, .* \(steps as columns of their own"):
        parse_plan(content | {"schema": content["schema"] | about})


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_is_said_in_a_sentence(case: str) -> None:
    changes, sentence = WRONG[case]
    with pytest.raises(PlanError, match=sentence):
        parse_plan(content_by_columns() | changes)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (TWO, "two parties have nobody outside the pair to deal"),
        (COLUMNS | {"insurer": ["sex"]}, "nobody holds these columns; .* smoker"),
        (COLUMNS | {"insurer": ["sex", "smoker", "age"]}, "at two parties; .* age"),
        (COLUMNS | {"insurer": ["sex", "smoker", "height"]}, "no released columns of the schema: height"),
        (
            {"aggregator": COLUMNS["hospital"]} | {k: v for k, v in COLUMNS.items() if k != "hospital"},
            "no party may be",
        ),
        ({"one": [c for held in COLUMNS.values() for c in held], "two": [], "three": []}, "2 to 8 parties"),
    ],
)
def test_columns_are_each_at_one_party(columns: dict[str, list[str]], sentence: str) -> None:
    with pytest.raises(PlanError, match=sentence):
        plan_by_columns(columns)


def test_columns_without_a_plan_by_columns_are_refused() -> None:
    content = content_by_columns()
    with pytest.raises(PlanError, match="go with 'partition: columns'"):
        parse_plan({key: value for key, value in content.items() if key != "partition"})


def test_the_approval_screen_says_what_leaves_and_who_would_have_to_conspire() -> None:
    told = " ".join(describe(plan_by_columns(COLUMNS), "hospital").split())
    assert "Your columns leave only as shares: rows under masks to insurer, registry, who lack the seeds" in told
    assert "A dealer and one party of its pair together could read the other's rows" in told
    assert "Read: 3 columns ('age', 'dose', 'ward')." in told
    assert "one person, with a row at every party, added or removed" in told
    alone = " ".join(describe(plan_by_columns(TWO, **AGGREGATOR_DEALS), "hospital").split())
    assert "it and any one party TOGETHER could read the other's rows" in alone
    notary = " ".join(describe(plan_by_columns(NOTARY), "notary").split())
    assert "You hold no columns: no rows of yours are read." in notary


def test_a_policy_s_columns_are_the_party_s_own() -> None:
    limits: dict[str, Any] = {"maximum_epsilon_per_run": 5, "maximum_epsilon_in_total": 5, "maximum_delta": 1e-3}
    policy = Policy(**limits, columns=["age", "dose", "ward"])
    assert violations(policy, plan_by_columns(COLUMNS), "hospital") == []
    assert "not allowed: sex, smoker" in violations(policy, plan_by_columns(COLUMNS), "insurer")[0]
    trusting = violations(policy, plan_by_columns(TWO, **AGGREGATOR_DEALS), "hospital")
    assert any("this policy demands 1" in told for told in trusting)  # colluders: 0 must be wanted
