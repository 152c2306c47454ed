"""The assessment as an inquiry: its price is the plan's whatever is asked, its noise as declared, its figures hold."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian, get_sigma_gaussian
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.assessment import schedule
from synth.assessment.inquiry import AssessmentInquiry
from synth.assessment.scorecard import BUCKETS
from synth.audit.canaries import extreme_rows
from synth.audit.replay import Neighbours, Subject, replay
from synth.budget import assessment_events, set_aside, synthesis_share
from synth.encoding.records import Codec, Records
from synth.errors import PlanError, ProtocolError
from synth.interface import Ask, Sum
from synth.messages import wire
from synth.plan import Plan, parse_plan
from synth.privacy.accounting import as_units, compose
from synth.privacy.noise import seeded_source
from synth.privacy.shares import share_of, summed_variance
from synth.programme import inquiries, programme, whole_cost
from synth.schema import digest_of
from synth.statistics.histograms import Statistics
from synth.synthesizers.registry import FAMILIES
from tests.contract.test_synthesizers import SMALLEST
from tests.inline import Inline, statistics_of
from tests.small import plan_content, plan_of, table

MARGINALS = {"name": "marginals"}
ASSESSED: dict[str, Any] = {"assessment": {"share": 0.2, "pairs": 5}}


def people(plan: Plan, rows: int, seed: int) -> Records:
    return Codec(plan.table).encode(table(rows, seed))


def asked(plan: Plan, rows: int = 1000) -> tuple[Inline, AssessmentInquiry, Records]:
    """An assessment of other people's rows, as good as a table can be, before it is asked."""
    data = {party.name: people(plan, rows, n) for n, party in enumerate(plan.parties)}
    world = Inline(plan, data, seed=3)
    made = people(plan, plan.rows, 99)
    inquiry = AssessmentInquiry(plan)
    inquiry.begin(statistics_of(world), made)
    world.charged.clear()
    return world, inquiry, made


@cache
def private() -> tuple[Inline, AssessmentInquiry, Records]:
    return asked(plan_of(MARGINALS, rows=1000, **ASSESSED))


def question() -> Ask:
    ask = private()[1].ask(0)
    assert ask is not None
    return ask


# The budget


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_every_family_leaves_room_for_the_assessment(family: str) -> None:
    plan = plan_of(SMALLEST[family], **ASSESSED)
    total = compose(whole_cost(plan, "party-1"), plan.delta).epsilon
    assert 2.95 < total <= 3.0  # and wastes nothing


def test_the_share_is_the_assessments_own_price() -> None:
    """Its counts cost what a Gaussian mechanism with that share of the budget's ρ would."""
    plan = plan_of(MARGINALS, **ASSESSED)
    sigma = get_sigma_gaussian(3.0, plan.delta) / 0.2**0.5
    events = list(assessment_events(plan).values())
    assert compose(events, plan.delta).epsilon == pytest.approx(get_epsilon_gaussian(sigma, plan.delta), rel=0.01)
    assert set_aside(plan, 7)[1:] == events
    assert synthesis_share(plan) == pytest.approx(0.6)
    assert assessment_events(plan_of(MARGINALS)) == {}
    assert synthesis_share(plan_of(MARGINALS)) == pytest.approx(0.8)


def test_without_an_assessment_nothing_changes() -> None:
    """Plans of before these sections keep their digests, so that what was approved stays approved."""
    plan = plan_of(MARGINALS)
    dumped = plan.model_dump(mode="json", by_alias=True)
    assert dumped.pop("assessment") is None
    assert dumped.pop("gate") is None
    assert plan.digest() == digest_of(dumped)
    assert list(inquiries(plan)) == [stage.phase for stage in programme(plan).stages] == ["statistics", "training"]
    with pytest.raises(PlanError, match="no 'assessment'"):
        AssessmentInquiry(plan)


def test_with_one_the_digest_consent_and_order_know_it() -> None:
    plan = plan_of(MARGINALS, **ASSESSED)
    assert plan.digest() != plan_of(MARGINALS).digest()
    assert plan.digest() != plan_of(MARGINALS, **ASSESSED, gate={"minimum_auroc": 0.5}).digest()
    assert (
        list(inquiries(plan))
        == [stage.phase for stage in programme(plan).stages]
        == ["statistics", "training", "assessment"]
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gate": {"minimum_auroc": 0.9}}, "add an 'assessment' section"),
        ({"assessment": {}, "gate": {}}, "gate without a limit"),
        ({"assessment": {"share": 0.95}}, "leave nothing for the synthesizer"),
        ({"assessment": {"shares": 0.1}}, "unknown key"),
        ({"assessment": {}, "gate": {"maximum_auroc": 0.1}}, "unknown key"),
    ],
)
def test_mistakes_are_named(change: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        parse_plan(plan_content(MARGINALS) | change)


def test_usefulness_needs_something_to_predict() -> None:
    content = plan_content(MARGINALS, assessment={}, gate={"minimum_auroc": 0.7})
    numeric = content["schema"] | {"target": "age"}
    with pytest.raises(PlanError, match="categorical or boolean target"):
        parse_plan(content | {"schema": numeric})
    plan = parse_plan(content | {"schema": numeric, "gate": None})
    assert schedule.queries(plan)["outcomes"] == 1


# The party


def test_declared_cost_is_charged_cost() -> None:
    world, inquiry, _ = private()
    fresh = Inline(world.plan, world.data, seed=4)
    fresh.total(inquiry, question())
    for party in world.plan.parties:
        assert as_units(fresh.charged[party.name]) == as_units(AssessmentInquiry(world.plan).whole_cost(party.name))


numbers = st.integers(0, 2**32 - 1)


@given(numbers, numbers)
@settings(max_examples=25, deadline=None)
def test_one_row_moves_one_cell_of_each_histogram_whatever_is_asked(asking: int, row: int) -> None:
    """Bins, points, buckets and row numbers of any kind, even made to single somebody out."""
    world, inquiry, _ = private()
    rng, cells = np.random.default_rng(asking), inquiry.cells
    bins = np.concatenate([rng.integers(0, p.stop - p.start, p.stop - p.start) for p in cells.slices.values()])
    hostile = {
        "bins": bins,
        "weights": rng.normal(0, 100, (2, cells.size)),
        "edges": np.sort(rng.random((1, BUCKETS - 1))),
        "rows": rng.integers(0, 2**63, world.plan.rows).astype(np.uint64),
    }
    ask = Ask(hostile, {"phase": "assessment"})
    everybody = world.data["party-1"]
    without = everybody.take(np.arange(len(everybody)) != row % len(everybody))
    answers = [inquiry.answer(ask, "party-1", rows, {}, seeded_source(1))[0] for rows in (everybody, without)]
    for part, queries in schedule.queries(world.plan).items():
        change = answers[0].arrays[part] - answers[1].arrays[part]  # the same noise on both sides
        assert sorted(change[change != 0]) == [1] * queries


@pytest.mark.parametrize("corner", range(3), ids=["lowest", "highest", "missing"])
def test_the_audit_by_replay_finds_its_price_exact(corner: int) -> None:
    """Frozen noise, a worst-case row more: nothing differs but under noise, and there by all that was declared."""
    world, _, _ = private()
    subject = Subject(lambda: AssessmentInquiry(world.plan), [question()], "party-1", world.plan.noisy_parties)
    rows = world.data["party-1"].take(slice(0, 60))
    found = replay(subject, Neighbours(rows, extreme_rows(world.plan.table)[corner], joins=True))
    assert found.violations == []
    assert found.tightness > 0.99


def test_shapes_tell_nothing_about_the_rows() -> None:
    world, inquiry, _ = private()
    rows = world.data["party-1"]
    few, many = (
        inquiry.answer(question(), "party-1", each, {}, seeded_source(5))[0] for each in (rows.take(np.arange(2)), rows)
    )
    assert {k: (v.shape, v.dtype) for k, v in few.arrays.items()} == {
        k: (v.shape, v.dtype) for k, v in many.arrays.items()
    }


def test_the_noise_of_an_answer_is_the_declared_share() -> None:
    """Variance of the noise over all cells and 60 answers: within 10 % (6 standard errors at the fewest cells)."""
    world, inquiry, _ = private()
    rows, ask = world.data["party-1"], question()
    exact = AssessmentInquiry(plan_of(MARGINALS, rows=1000, privacy="none", **ASSESSED))
    truth = exact.answer(ask, "party-1", rows, {}, seeded_source(0))[0].arrays
    answers = [inquiry.answer(ask, "party-1", rows, {}, seeded_source(n))[0].arrays for n in range(60)]
    for part, event in assessment_events(world.plan).items():
        noise = np.concatenate([answer[part] - truth[part] for answer in answers])
        assert noise.var() == pytest.approx(share_of(world.plan, event), rel=0.1)
        assert summed_variance(world.plan, event) == pytest.approx(1.5 * event.variance)  # 3 parties, 1 may collude


@pytest.mark.parametrize(
    "change",
    [
        {"rows": np.zeros(3, np.uint64)},
        {"rows": np.zeros(3000, np.int64)},
        {"weights": np.zeros((2, 3))},
        {"edges": np.full((1, BUCKETS - 1), np.nan)},
        {"edges": np.linspace(1, 0, BUCKETS - 1)[None]},
        {"bins": np.zeros(5, np.int64)},
        {"more": np.zeros(1)},
    ],
)
def test_what_cannot_be_answered_is_refused_before_it_is_charged(change: dict[str, Any]) -> None:
    inquiry = private()[1]
    with pytest.raises(ProtocolError):
        inquiry.cost(Ask(question().arrays | change, {"phase": "assessment"}), "party-1")
    heavy = question().arrays["weights"] + 1e6
    with pytest.raises(ProtocolError, match="beyond reason"):
        inquiry.cost(Ask(question().arrays | {"weights": heavy}, {"phase": "assessment"}), "party-1")
    with pytest.raises(ProtocolError):
        inquiry.cost(Ask(question().arrays, {"phase": "training"}), "party-1")


# The aggregator


def test_the_question_survives_a_restart_to_the_last_bit() -> None:
    world, inquiry, made = private()
    resumed = AssessmentInquiry(world.plan)
    resumed.restore(inquiry.state())
    resumed.begin(_no_statistics(), made)
    digests = [wire.digest(wire.pack_ask(each.ask(0) or Ask())) for each in (inquiry, resumed)]
    assert digests[0] == digests[1]


def _no_statistics() -> Statistics:
    """A question that was kept is not made again, so nothing is read here."""
    return object()  # type: ignore[return-value]


def test_figures_are_near_the_exact_ones_and_are_not_asked_for_twice() -> None:
    world, _, _ = private()
    content = world.plan.model_dump(mode="json", by_alias=True)
    found = {}
    for privacy in (content["privacy"], "none"):
        plan = parse_plan(content | {"privacy": privacy})
        here, inquiry, made = asked(plan)
        here.drive(inquiry)
        assert inquiry.ask(1) is None
        again = AssessmentInquiry(plan)
        again.restore(inquiry.state())
        assert again.ask(1) is None
        found[privacy == "none"] = again.result(made, seed=1)
        assert found[privacy == "none"] == inquiry.result(made, seed=1)
    noisy, exact = found[False], found[True]
    assert exact.epsilon is None
    assert noisy.epsilon is not None
    assert 0 < noisy.epsilon < 3
    assert set(noisy.figures) == {"tvd_one_way", "tvd_two_way", "auroc", "accuracy", "copy_share", "copy_excess"}
    for name in ("auroc", "accuracy", "copy_share"):  # one seed; each end misses 1 time in 20, by twice that 1 in 1000
        figure, truth = noisy.figures[name], exact.figures[name].value
        assert figure.value - 2 * (figure.value - figure.low) <= truth + 1e-9, name
        assert truth <= figure.value + 2 * (figure.high - figure.value) + 1e-9, name
    assert exact.figures["auroc"].value > 0.7
    assert exact.figures["copy_excess"].value < 0.01


def test_a_table_of_the_parties_own_rows_is_caught() -> None:
    plan = plan_of(MARGINALS, rows=1000, **ASSESSED, gate={"maximum_copy_excess": 0.1})
    world = Inline(plan, {party.name: people(plan, 1000, n) for n, party in enumerate(plan.parties)}, seed=3)
    stolen = Records.concat(list(world.data.values()))
    inquiry = AssessmentInquiry(plan)
    inquiry.begin(statistics_of(world), stolen)
    world.drive(inquiry)
    record = inquiry.result(stolen, seed=1)
    assert record.figures["copy_excess"].low > 0.5
    assert record.verdicts[0].outcome == "failed"
    assert record.withheld


def test_answers_of_another_version_are_refused() -> None:
    world, inquiry, made = private()
    fresh = AssessmentInquiry(world.plan)
    with pytest.raises(ProtocolError, match="before there was a table"):
        fresh.ask(0)
    with pytest.raises(ProtocolError, match="before the parties were asked"):
        fresh.result(made, 0)
    answer, _ = inquiry.answer(question(), "party-1", world.data["party-1"], {}, seeded_source(1))
    fresh.restore(inquiry.state())
    with pytest.raises(ProtocolError, match="all of them"):
        fresh.absorb(Sum({"pairs": answer.arrays["pairs"]}, answer.weight, ("party-1",)))
    answer.arrays["pairs"] = answer.arrays["pairs"][1:]
    with pytest.raises(ProtocolError, match="shape"):
        fresh.absorb(Sum.of({"party-1": answer}))
