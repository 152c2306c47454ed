"""A limit passes only where it is shown to hold."""

from __future__ import annotations

import pytest

from synth.assessment.gate import judge
from synth.assessment.record import AssessmentRecord, Figure
from synth.assessment.settings import GateSettings

FIGURES = {
    "auroc": Figure(value=0.86, low=0.84, high=0.88),
    "tvd_one_way": Figure(value=0.02, low=0.01, high=0.03),
}


@pytest.mark.parametrize(
    ("limits", "outcome"),
    [
        ({"minimum_auroc": 0.84}, "passed"),
        ({"minimum_auroc": 0.85}, "undecided"),
        ({"minimum_auroc": 0.89}, "failed"),
        ({"maximum_tvd_one_way": 0.03}, "passed"),
        ({"maximum_tvd_one_way": 0.02}, "undecided"),
        ({"maximum_tvd_one_way": 0.005}, "failed"),
    ],
)
def test_the_unfavourable_end_decides(limits: dict[str, float], outcome: str) -> None:
    verdicts = judge(GateSettings(**limits), FIGURES)
    assert [verdict.outcome for verdict in verdicts] == [outcome]
    record = AssessmentRecord(coverage=1.0, figures=FIGURES, cost=[], epsilon=0.1, verdicts=verdicts)
    assert record.withheld == (outcome != "passed")
    assert record.reasons() == "" if outcome == "passed" else next(iter(limits)) in record.reasons()


def test_without_a_gate_nothing_is_withheld() -> None:
    assert judge(None, FIGURES) == []
    assert not AssessmentRecord(coverage=1.0, figures=FIGURES, cost=[], epsilon=None).withheld
