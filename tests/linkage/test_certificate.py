"""The certificate of a plan by columns: the unit, ε towards a party, and that neither can be talked down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aggregator.checkpoint import Position
from aggregator.federate import federate
from aggregator.publish import certify
from aggregator.spending import Spending
from synth.certificate.certificate import Certificate
from synth.certificate.linkage import RELATION, linkage_record
from synth.certificate.promise import promise
from synth.certificate.verification import Evidence, Finding, check_certificate
from synth.linkage.inquiry import AlignmentInquiry
from synth.plan import Plan
from synth.privacy.claims import RELATION as BY_ROWS
from synth.statistics.mixture_rounds import statistics_inquiry
from synth.synthesizers.registry import build
from tests.linkage.consortium import RUN, Consortium, admitted
from tests.small import plan_of
from tests.vertical import AGGREGATOR_DEALS, COLUMNS, TWO, plan_by_columns, tables_by_columns, whole_table

ROWS = 60
PLAN = plan_by_columns(COLUMNS, ROWS)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    folder: Path = tmp_path_factory.mktemp("certified")
    consortium = Consortium(PLAN, tables_by_columns(whole_table(ROWS), COLUMNS), folder)
    sums, spending, done = admitted(consortium), Spending(PLAN), 0
    statistics, model = statistics_inquiry(PLAN), build(PLAN)
    for inquiry in (AlignmentInquiry(PLAN), statistics, model):
        if inquiry is model:
            model.begin(statistics.result(), 1)
        for ask, total in federate(inquiry, sums, 0, done):
            spending.add(inquiry, ask, done, list(total.parties))
            done += 1
    position = Position(RUN, PLAN.digest(), 1, done, **spending.to_records())
    return certify(PLAN, sums.finish(), position, {}, simulated=True)


def findings(certificate: Certificate, plan: Plan = PLAN) -> dict[str, Finding]:
    evidence = Evidence(lambda *_: True, plan=plan, unsigned=True)
    return {found.what: found for found in check_certificate(certificate, evidence)}


def test_it_holds_against_its_plan(certificate: Certificate) -> None:
    assert [found for found in findings(certificate).values() if found.holds is False] == []
    assert certificate.claim.relation == RELATION
    assert certificate.claim.epsilon is not None
    assert certificate.claim.epsilon <= 3.0
    assert certificate.linkage is not None
    assert certificate.linkage.substitution_epsilon is not None
    assert 3.0 < certificate.linkage.substitution_epsilon < 6.0
    assert "which of its own people" in promise(certificate)
    assert f"ε = {certificate.linkage.substitution_epsilon:.4g} for cells replaced" in promise(certificate)


def test_it_comes_back_from_its_file(certificate: Certificate) -> None:
    again = Certificate.model_validate_json(certificate.model_dump_json())
    assert again.signed_text() == certificate.signed_text()
    assert '"linkage":{' in again.signed_text()


@pytest.mark.parametrize("bent", ["epsilon", "words", "gone", "relation"])
def test_nothing_of_it_can_be_talked_down(certificate: Certificate, bent: str) -> None:
    record = certificate.linkage
    assert record is not None
    changes: dict[str, dict[str, Any]] = {
        "epsilon": {"linkage": record.model_copy(update={"substitution_epsilon": 3.0})},
        "words": {"linkage": record.model_copy(update={"dealers": "Nobody could read anything."})},
        "gone": {"linkage": None, "claim": certificate.claim.model_copy(update={"relation": BY_ROWS})},
        "relation": {"claim": certificate.claim.model_copy(update={"relation": BY_ROWS})},
    }
    found = findings(certificate.model_copy(update=changes[bent]))
    assert found["plan" if bent != "relation" else "ε recomputed"].holds is False


def test_a_party_that_knows_half_of_the_noise_learns_more() -> None:
    with_notary = linkage_record(plan_by_columns(TWO | {"notary": []}, ROWS))
    alone = linkage_record(plan_by_columns(TWO, ROWS, **AGGREGATOR_DEALS))
    assert with_notary is not None
    assert alone is not None
    assert (alone.substitution_epsilon or 0) > 1.2 * (with_notary.substitution_epsilon or 0)
    assert linkage_record(plan_of({"name": "marginals"})) is None
