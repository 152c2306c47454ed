"""Only what was approved, to the letter, and nothing beyond the party's own limits."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fed_node.consent.approvals import Approvals, check_ask, check_automatic, check_policy
from fed_node.consent.description import describe, in_groups
from fed_node.consent.policy import Policy, violations
from fed_node.errors import AskOutsidePlan, NotApproved, PolicyRefused, StoreDamaged
from synth.errors import InputError
from synth.interface import Ask
from synth.privacy.events import CountNoise, Event, SampledGaussian
from tests.fed_node.plans import plan_with

LIMITS: dict[str, Any] = {
    "maximum_epsilon_per_run": 2.0,
    "maximum_epsilon_in_total": 6.0,
    "maximum_delta": 1e-6,
}
STATISTICS = Ask(options={"phase": "statistics"})
TRAINING = Ask(arrays={"w": np.zeros(3)}, options={"phase": "training"})


def policy_with(**changes: Any) -> Policy:
    return Policy.model_validate(LIMITS | changes)


def test_a_plan_within_all_limits() -> None:
    assert violations(policy_with(), plan_with(), "north") == []
    check_policy(policy_with(), plan_with(), "north")


@pytest.mark.parametrize(
    ("limits", "changes", "said"),
    [
        ({"maximum_epsilon_per_run": 1.9}, {}, "one run may spend 1.9"),
        ({"maximum_epsilon_in_total": 1.5}, {}, "all runs together may spend 1.5"),
        ({"maximum_delta": 1e-7}, {}, "δ is 1e-06"),
        ({"minimum_rows": 5000}, {}, "4000 rows"),
        ({"minimum_parties": 4}, {}, "sums of 3 parties"),
        ({"synthesizers": ["marginals"]}, {}, "uses 'ctgan'"),
        ({"columns": ["sex", "age"]}, {}, "glucose, seen"),
        ({"statistics_modes": ["masked"]}, {}, "counts 'ckks'"),
        ({"update_modes": ["ckks"]}, {}, "updates 'masked'"),
        ({"maximum_rounds": 11}, {}, "12 rounds"),
        ({"minimum_colluders": 2}, {}, "at most 1 parties collude"),
        ({}, {"secure_sum": {"colluders": 0}}, "at most 0 parties collude"),
        ({"noise": ["local"]}, {}, "noise in its counts is 'shared'"),
        ({"noise": ["shared"]}, {"privacy": {"epsilon": 2.0, "delta": 1e-6, "noise": "local"}}, "is 'local'"),
        ({}, {"privacy": "none"}, "no privacy at all"),
        ({}, {"profile": "faithful"}, "'faithful'"),
        (
            {},
            {
                "synthesizer": {"name": "ctgan", "weighting": "similarity"},
                "privacy": {"epsilon": 2.0, "delta": 1e-6, "noise": "local"},
            },
            "one by one",
        ),
    ],
)
def test_each_limit_is_named(limits: dict[str, Any], changes: dict[str, Any], said: str) -> None:
    found = violations(policy_with(**limits), plan_with(**changes), "north")
    assert len(found) == 1
    assert said in found[0]
    with pytest.raises(PolicyRefused, match="breaks this party's policy"):
        check_policy(policy_with(**limits), plan_with(**changes), "north")


def test_a_party_that_is_not_in_the_plan() -> None:
    assert "does not name this party" in violations(policy_with(), plan_with(), "east")[0]


def test_who_trusts_nobody_needs_no_colluders() -> None:
    local = {"privacy": {"epsilon": 2.0, "delta": 1e-6, "noise": "local"}, "secure_sum": {"colluders": 0}}
    assert violations(policy_with(noise=["local"], minimum_colluders=2), plan_with(**local), "north") == []


def test_public_rows_may_be_used_without_proof() -> None:
    assert violations(policy_with(allow_unproven=True), plan_with(privacy="none", profile="faithful"), "north") == []


def test_a_policy_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    with pytest.raises(InputError, match="cannot read"):
        Policy.load(path)
    path.write_text("maximum_epsilon_per_run: 2\nmaximum_epsilon_in_total: 6\nmaximum_delta: 1.0e-6\n")
    assert Policy.load(path) == policy_with()
    assert Policy.load(path).budget.epsilon == 6
    path.write_text("maximum_epsilon: 2\n")
    with pytest.raises(InputError, match=r"maximum_epsilon: Extra inputs"):
        Policy.load(path)
    path.write_text("a: [")
    with pytest.raises(InputError, match="not YAML"):
        Policy.load(path)


def test_every_limit_has_its_sentence() -> None:
    assert all(field.description and field.description.endswith(".") for field in Policy.model_fields.values())


def test_an_approved_plan_comes_back_to_the_letter(tmp_path: Path) -> None:
    plan = plan_with()
    digest = Approvals(tmp_path / "approved").approve(plan)
    approvals = Approvals(tmp_path / "approved")
    assert approvals.get(digest) == plan
    assert approvals.digests() == [digest]
    with pytest.raises(NotApproved):
        approvals.get(plan_with(name="other").digest())
    approvals.withdraw(digest)
    with pytest.raises(NotApproved):
        approvals.get(digest)


@pytest.mark.parametrize("digest", ["", "../" + "a" * 61, "A" * 64, "a" * 63, "a" * 64 + "\n"])
def test_what_is_no_digest_was_never_approved(tmp_path: Path, digest: str) -> None:
    with pytest.raises(NotApproved):
        Approvals(tmp_path).get(digest)


def test_an_altered_approval_is_refused(tmp_path: Path) -> None:
    approvals = Approvals(tmp_path)
    digest = approvals.approve(plan_with())
    path = tmp_path / f"{digest}.json"
    whole = path.read_text()
    for damage in (whole.replace('"epsilon": 2.0', '"epsilon": 9.0'), whole[:-9], "", "[]"):
        assert damage != whole
        path.write_text(damage)
        with pytest.raises(StoreDamaged, match="Approve it again"):
            approvals.get(digest)


def test_nobody_approves_by_accident() -> None:
    plan = plan_with()
    for policy in (None, policy_with(), policy_with(auto_approve=False), policy_with(auto_approve=["0" * 64])):
        with pytest.raises(NotApproved, match="waits for approval"):
            check_automatic(policy, plan)
    check_automatic(policy_with(auto_approve=[plan.table.digest()]), plan)


def test_an_approving_policy_names_the_schemas_it_covers(tmp_path: Path) -> None:
    """Whoever writes the schema asks the question: a bound of the aggregator's choice is one."""
    policy = policy_with(auto_approve=[plan_with().table.digest()])
    columns = {"age": {"kind": "integer", "min": 0, "max": 89}}
    with pytest.raises(NotApproved):
        check_automatic(policy, plan_with(schema={"columns": columns}))
    path, limits = tmp_path / "policy.yaml", "".join(f"{key}: {value}\n" for key, value in LIMITS.items())
    for value in ("true", "[true]", "['abc']", f"['{'A' * 64}']"):
        path.write_text(limits + f"auto_approve: {value}\n")
        with pytest.raises(InputError, match="auto_approve"):
            Policy.load(path)
    path.write_text(limits + "auto_approve: true\n")
    with pytest.raises(InputError, match=r"auto_approve: \[DIGEST\], where `fedsynth schema check FILE` prints"):
        Policy.load(path)
    path.write_text(limits + "auto_approve: false\n")
    assert Policy.load(path).auto_approve == []


def test_the_asks_of_a_plan_are_accepted_in_order() -> None:
    plan = plan_with()
    check_ask(plan, STATISTICS, 0)
    for sequence in range(1, 13):
        check_ask(plan, TRAINING, sequence)


@pytest.mark.parametrize(
    ("ask", "sequence"),
    [
        (STATISTICS, 1),
        (TRAINING, 0),
        (TRAINING, 13),
        (TRAINING, -1),
        (TRAINING, 10**30),
        (Ask(options={"phase": "training"}, combine="gather"), 1),
        (Ask(options={"phase": "statistics"}, combine="gather"), 0),
        (Ask(), 0),
    ],
)
def test_any_other_ask_is_refused(ask: Ask, sequence: int) -> None:
    with pytest.raises(AskOutsidePlan):
        check_ask(plan_with(), ask, sequence)


def test_counts_are_gathered_only_where_that_was_approved() -> None:
    plan = plan_with(
        synthesizer={"name": "ctgan", "weighting": "similarity"},
        privacy={"epsilon": 2.0, "delta": 1e-6, "noise": "local"},
    )
    check_ask(plan, Ask(options={"phase": "statistics"}, combine="gather"), 0)
    with pytest.raises(AskOutsidePlan):
        check_ask(plan, STATISTICS, 0)
    with pytest.raises(AskOutsidePlan):
        check_ask(plan, Ask(options={"phase": "training"}, combine="gather"), 1)


@settings(max_examples=300, deadline=None)
@given(
    options=st.dictionaries(
        st.sampled_from(["phase", "steps", "x"]),
        st.one_of(st.booleans(), st.integers(), st.floats(), st.text(max_size=12), st.just("training")),
    ),
    combine=st.sampled_from(["sum", "gather"]),
    sequence=st.integers(),
)
def test_malformed_asks_are_refused_by_code(options: dict[str, Any], combine: Any, sequence: int) -> None:
    ask = Ask(options=options, combine=combine)
    valid = combine == "sum" and options.get("phase") == "training" and 1 <= sequence <= 12
    if valid:
        check_ask(plan_with(), ask, sequence)
    else:
        with pytest.raises(AskOutsidePlan) as refused:
            check_ask(plan_with(), ask, sequence)
        assert refused.value.code == "ask-outside-plan"


def test_a_plan_in_words() -> None:
    events: list[Event] = [CountNoise(4, 812.0), SampledGaussian(0.05, 1.25, 600)]
    text = describe(plan_with(), "north", events)
    for said in (
        in_groups(plan_with().digest()),
        "4000 rows",
        "'sex', 'age', 'glucose', 'seen'",
        "Never read: 'patient'",
        "only the sum of the parties is ever opened",
        "12 times",
        "ε = 2 at δ = 1e-06",
        "600 training steps, each on a random 5.000% of the rows",
        "4 histograms with integer noise of variance 812",
    ):
        assert said in text
    assert all(len(line) < 400 for line in text.splitlines())


def test_no_proof_is_said_loudly() -> None:
    for changes in ({"privacy": "none"}, {"profile": "faithful"}):
        text = describe(plan_with(**changes), "north")
        assert "NO proven limit" in text
        assert "At most ε" not in text
