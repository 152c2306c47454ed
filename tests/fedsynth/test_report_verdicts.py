"""What a page says of a table in words: the certificate, the headline figures, the secrets that stand out."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedsynth.evaluation.files import certified
from fedsynth.report.page import page
from fedsynth.report.subject import Subject, provenance
from synth.assessment.record import AssessmentRecord, Figure, Verdict
from synth.certificate.certificate import Certificate
from synth.metrics.attacks.risk import Interval
from synth.metrics.evaluation import Evaluation, Risk, Score
from synth.metrics.registry import FIDELITY
from synth.privacy.claims import Claim
from synth.schema import Schema
from tests.fedsynth.evaluated import assert_sound, in_short, quick_page
from tests.small import SCHEMA, table


def certificate_for(table_digest: str) -> Certificate:
    """Signed by nobody, so it never holds; but it may be about the right table."""
    return Certificate(
        run="run",
        plan_digest="0",
        schema_digest="0",
        profile="rigorous",
        code_version="0",
        secure_sum={"minimum_parties": 2},
        noise="Every party added all the noise itself.",
        sampling="No row sampling.",
        claim=Claim(epsilon=1.5, nominal_epsilon=1.5, delta=1e-5, method="pld"),
        simulated=False,
        table_sha256={"synthetic.csv": table_digest},
        statements=[],
    )


def closed_gate() -> AssessmentRecord:
    """An assessment after which the table must not be handed out."""
    return AssessmentRecord(
        coverage=1.0,
        figures={"auroc": Figure(value=0.6, low=0.5, high=0.7)},
        cost=[],
        epsilon=0.1,
        verdicts=[Verdict(limit="minimum_auroc", bound=0.9, outcome="failed")],
    )


def test_a_certificate_is_told_in_words_and_held_against_the_table(
    folder: Path, html: str, measured: Evaluation
) -> None:
    assert "No certificate was given" in html
    found, schema = measured, Schema.model_validate(SCHEMA)
    (folder / "certificate.json").write_text(certificate_for("0" * 64).model_dump_json())
    promise = certified(folder / "certificate.json", folder / "synthetic.csv")
    text = assert_sound(page(Subject(found, schema, provenance([], "of this test", schema), *promise))).text
    assert "changes the odds" not in text
    assert "Nothing is promised" in text
    assert text.count("does NOT hold for this table") == 3  # at the top, beside the headline, over the checks
    assert "certificate does not hold" in text
    assert "is not what was certified" in text
    promise = (certificate_for("0" * 64), ())
    text = assert_sound(page(Subject(found, schema, provenance([], "of this test", schema), *promise))).text
    assert "the promise is the certificate: ε = 1.50" in text
    assert "changes the odds by a factor of at most e^1.5" in text
    assert "does NOT hold" not in text


def test_a_quick_look_is_never_called_safe() -> None:
    schema = Schema.model_validate(SCHEMA)
    text = assert_sound(quick_page(schema, table(60, seed=1), table(60, seed=2), table(60, seed=3))).text
    assert "1 of 7 attacks could be judged" in text
    assert "not fully tested" in text
    assert "no attack succeeded" not in text


def scored(evaluation: Evaluation, **values: tuple[float, float]) -> Evaluation:
    """All headline figures at their ceiling, but for those given with theirs."""
    level = {metric.name: (metric.ideal, metric.ideal) for metric in FIDELITY if metric.headline} | values
    scores = [
        Score(metric=score.metric, value=level[score.metric][0], ceiling=level[score.metric][1])
        if score.metric in level
        else score
        for score in evaluation.scores
    ]
    return evaluation.model_copy(update={"scores": scores})


@pytest.mark.parametrize(
    ("metric", "value", "ceiling", "said"),
    [
        (
            "detection_auroc",
            0.9,
            0.5,
            "a classifier tells real from synthetic rows with AUROC 0.900 (real data: 0.500)",
        ),
        ("association_kept", 0.82, 0.95, "82.0 % of the relations between columns are kept (real data keeps 95.0 %)"),
        ("tvd_two_way", 0.4, 0.1, "pairs of columns are off by 40.0 % (real data by 10.0 %)"),
        ("tvd_one_way", 0.3, 0.0, "single columns are off by 30.0 % (real data by 0.0 %)"),
    ],
)
def test_any_headline_figure_behind_real_data_decides_and_is_named(
    metric: str, value: float, ceiling: float, said: str, measured: Evaluation
) -> None:
    faithful = in_short(scored(measured)).partition("Is it useful?")[0]
    assert "✓ about as good as real data" in faithful
    behind = in_short(scored(measured, **{metric: (value, ceiling)})).partition("Is it useful?")[0]
    assert "! clearly behind real data" in behind
    assert f"Clearly behind real data: {said}." in behind.replace("\u00a0", " ")


def attacked(evaluation: Evaluation, secrets: dict[str, Risk]) -> Evaluation:
    """Every attack judged and none flagged, with these risks secret by secret."""
    harmless = Interval(0.1, 0.0, 0.2)
    risks = [
        risk.model_copy(update={"value": harmless, "null": harmless, "flagged": False}) for risk in evaluation.risks
    ]
    return evaluation.model_copy(update={"risks": risks, "inference_by_column": secrets})


def test_a_secret_that_stands_out_is_named_even_where_no_attack_is_flagged(measured: Evaluation) -> None:
    risk = Risk(metric="inference", value=Interval(0.237, 0.075, 0.398), null=Interval(0.5, 0.4, 0.6))
    short = in_short(attacked(measured, {"sex": risk})).replace("\u00a0", " ")
    assert "✓ no attack succeeded" in short
    assert "No attack beats its control beyond chance." in short
    assert "inference of “sex”: 23.7 % (7.5 % to 39.8 %)" in short
    assert "1 of 3 such intervals lies above 0; by chance alone about one in forty does" in short
    flagged = in_short(attacked(measured, {"sex": risk.model_copy(update={"flagged": True})}))
    assert "no attack succeeded" not in flagged
    assert "~ some secrets leak" in flagged
    assert "guesses of “sex” do, beyond chance" in flagged


def test_nothing_is_green_about_safety_where_the_certificate_does_not_hold(measured: Evaluation, folder: Path) -> None:
    (folder / "certificate.json").write_text(certificate_for("0" * 64).model_dump_json())
    promise = certified(folder / "certificate.json", folder / "synthetic.csv")
    safe = in_short(attacked(measured, {}), *promise).partition("Is it safe?")[2]
    assert "! certificate does not hold" in safe
    assert "✓" not in safe


@pytest.mark.parametrize("rows", [2, 3, 60])
def test_a_table_of_few_rows_gets_a_caution_and_no_tick(rows: int) -> None:
    schema = Schema.model_validate(SCHEMA)
    text = assert_sound(quick_page(schema, table(rows), table(rows), table(200, seed=3))).text
    assert f"the real table has {rows} rows, the synthetic table has {rows} rows. Below 100 rows" in text
    assert "✓" not in text
    assert "Caution" not in quick_page(schema, table(100), table(100))
