"""All attacks in one verdict and a few sentences, true also where a single secret stands out."""

from __future__ import annotations

from fedsynth.report.subject import Subject, is_counted
from fedsynth.report.words import Verdict, count, interval
from synth.metrics.attacks.risk import Interval
from synth.metrics.evaluation import Evaluation, Risk
from synth.metrics.registry import METRICS
from synth.metrics.risks import NO_HOLDOUT


def leaks(subject: Subject) -> tuple[Verdict, str]:
    evaluation = subject.evaluation
    strong = [risk for risk in evaluation.risks if not risk.weak_evidence and risk.metric != "pi"]
    judged = [risk for risk in strong if risk.value is not None and risk.null is not None]
    tried = f"{len(judged)} of {count(len(strong), 'attack')} could be judged."
    remains = _what_remains(evaluation)
    if flagged := [METRICS[name].title.lower() for name in evaluation.flagged]:
        words = f"Attacks learn more about people in the data than about strangers: {', '.join(flagged)}."
        return Verdict("poor", "attacks succeed"), f"{words} {remains}"
    if secrets := flagged_secrets(evaluation):
        words = f"No attack beats its control as a whole, but guesses of {', '.join(secrets)} do, beyond chance."
        return Verdict("fair", "some secrets leak"), f"{tried} {words} {remains}"
    none = "No attack beats its control beyond chance." if judged else ""
    if len(judged) < len(strong):
        found = Verdict("unknown", "not fully tested")
        return found, " ".join(filter(None, [tried, none, remains, *_missing(subject, strong)]))
    return Verdict("good", "no attack succeeded"), f"{tried} {none} {remains}"


def flagged_secrets(evaluation: Evaluation) -> list[str]:
    return [f"“{name}”" for name, risk in evaluation.inference_by_column.items() if risk.flagged]


def _what_remains(evaluation: Evaluation) -> str:
    """The largest risk above the strangers' rate, and whether chance explains how many there are."""
    found = _remaining(evaluation)
    if not found or max(risk.value for risk in found.values()) <= 0:
        return ""
    name, largest = max(found.items(), key=lambda entry: entry[1].value)
    words = f"The largest risk that remains above the strangers' rate is {name}: {interval(largest)}."
    if above := sum(risk.low > 0 for risk in found.values()):
        lie = "lies" if above == 1 else "lie"
        words += f" {above} of {len(found)} such intervals {lie} above 0; by chance alone about one in forty does."
    return words


def _remaining(evaluation: Evaluation) -> dict[str, Interval]:
    """Risks that are counted beside a control, inference secret by secret."""
    by_secret = evaluation.inference_by_column
    whole = {METRICS[risk.metric].title.lower(): risk for risk in evaluation.risks if is_counted(risk)}
    if by_secret:
        whole.pop("inference", None)
    risks = whole | {f"inference of “{name}”": risk for name, risk in by_secret.items()}
    return {name: risk.value for name, risk in risks.items() if risk.value is not None and risk.null is not None}


def _missing(subject: Subject, strong: list[Risk]) -> list[str]:
    """What it would take to judge the others."""
    found = []
    if subject.evaluation.rows_holdout is None:
        found.append(f"Rows that the synthesizer never saw ({subject.holdout_option}) are needed for that.")
    reasons = {risk.omitted: None for risk in strong if risk.omitted not in (None, NO_HOLDOUT)}
    return found + [f"Not measured: {reason}." for reason in reasons]
