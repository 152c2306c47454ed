"""What attackers learned, each beside what they would learn about strangers and by blind guessing."""

from __future__ import annotations

from fedsynth.report.caution import cautious
from fedsynth.report.charts import Span, intervals
from fedsynth.report.leaks import flagged_secrets
from fedsynth.report.markup import Content, Markup
from fedsynth.report.parts import card, grid, legend, not_measured, paragraph, section
from fedsynth.report.subject import attack_rate, is_counted
from fedsynth.report.words import NOT_MEASURED, Verdict, interval, number
from synth.metrics.attacks.risk import Interval
from synth.metrics.evaluation import Evaluation, Risk
from synth.metrics.registry import METRICS

# metric → what its value, its null and its baseline are rates of
RATES = {
    "membership_distance": ("people recognised", "strangers accused", ""),
    "membership_density_ratio": ("people recognised", "strangers accused", ""),
    "copies": ("equal a real row", "equal a stranger's", ""),
    "attribute_disclosure": ("secrets guessed", "secrets of strangers", "commonest answer"),
    "pi": ("mean risk", "", ""),
    "share_closer_to_real": ("closer to real", "honest table", ""),
}
COUNTED = ("people in the data", "strangers", "blind guessing")


def safety(evaluation: Evaluation) -> Markup:
    rated = [(risk, attack_rate(risk)) for risk in evaluation.risks]
    measured = [(risk, rate) for risk, rate in rated if rate is not None]
    missing = [(METRICS[risk.metric].title, risk.omitted or "") for risk, rate in rated if rate is None]
    return section(
        "safety",
        "Privacy: what attackers learned",
        paragraph(
            "Each attack was carried out. Its success about people whose rows were in the data is compared with its "
            "success about strangers, whose rows were not: what works on both is general knowledge, not a leak. Lines "
            "are 95 % intervals. An attack is marked only if an exact test says that chance does not explain it. "
            "Attacks that fail do not prove safety; differential privacy does (see the certificate)."
        ),
        None if evaluation.rows_holdout else _no_control(),
        legend(real="expected without a leak", synthetic="attack on people in the data", other="blind guessing"),
        grid(*(_attack(risk, rate, evaluation) for risk, rate in measured), *_secrets(evaluation)),
        not_measured(missing),
    )


def _no_control() -> Markup:
    return paragraph(
        "No holdout rows were given, so there are no strangers to compare with: the rates below count general "
        "knowledge as success and cannot be judged. Membership cannot be measured at all.",
        class_="small",
    )


def _attack(risk: Risk, rate: Interval, evaluation: Evaluation) -> Markup:
    metric, found = METRICS[risk.metric], _verdict(risk)
    chip = None if found is None else cautious(found, evaluation)
    meaning = paragraph(metric.meaning, class_="quiet small")
    content: list[Content] = [meaning, intervals(_spans(risk, rate), metric.title)]
    if risk.value is not None and is_counted(risk) and risk.null is not None:
        content.append(
            paragraph(f"Risk that remains after the strangers' rate: {interval(risk.value)}.", class_="small")
        )
    if (auroc := risk.details.get("auroc")) is not None:
        content.append(
            paragraph(f"Members ranked above strangers: AUROC {number(auroc)} (chance 0.5).", class_="small")
        )
    return card(metric.title, chip, *content)


def _verdict(risk: Risk) -> Verdict | None:
    if risk.value is None:
        return Verdict("unknown", NOT_MEASURED)
    if risk.flagged:
        return Verdict("poor", "worse than its control")
    if risk.metric == "pi":
        return None  # a mean of the attacks above, which are judged one by one
    if risk.weak_evidence:
        return Verdict("unknown", "weak evidence")
    if risk.null is None:
        return Verdict("unknown", "no control")
    return Verdict("good", "no sign of a leak")


def _spans(risk: Risk, rate: Interval) -> list[Span]:
    own, control, blind = COUNTED if is_counted(risk) else RATES[risk.metric]
    found = [Span(own, rate, "synthetic")]
    if risk.null is not None:
        found.append(Span(control, risk.null, "real"))
    if risk.baseline is not None:
        found.append(Span(blind, risk.baseline, "other"))
    return found


def _secrets(evaluation: Evaluation) -> list[Markup]:
    """Inference, secret by secret."""
    spans = [
        Span(name, risk.value, "synthetic")
        for name, risk in evaluation.inference_by_column.items()
        if risk.value is not None
    ]
    if not spans:
        return []
    what = "risk that remains" if evaluation.rows_holdout else "plain success rate"
    drawn = intervals(spans, f"Inference by secret column: {what}")
    secrets = flagged_secrets(evaluation)
    beyond = f" Beyond chance: {', '.join(secrets)}." if secrets else ""
    said = paragraph(f"For each column: {what}.{beyond}", class_="small")
    found = Verdict("fair", "some secrets leak") if secrets else None
    return [card("Inference, secret by secret", found, said, drawn)]
