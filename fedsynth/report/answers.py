"""The top of the page: is it faithful, is it useful, is it safe? One sentence each, then the headline scores."""

from __future__ import annotations

from fedsynth.report.caution import caution, cautious
from fedsynth.report.charts import gauge
from fedsynth.report.leaks import leaks
from fedsynth.report.markup import Markup
from fedsynth.report.parts import card, grid, not_measured, notice, paragraph, section
from fedsynth.report.subject import Subject, utility_figures
from fedsynth.report.words import NOT_MEASURED, Verdict, better, count, number, percent, verdict
from synth.metrics.evaluation import Evaluation
from synth.metrics.metric import Metric
from synth.metrics.registry import FIDELITY, METRICS, UTILITY

ORDER = ("poor", "fair", "good", "unknown")  # of what is read first
# What a headline figure says, and how the same of two halves of the real table stands beside it.
SAID = {
    "tvd_one_way": ("single columns are off by {}", "real data by {}"),
    "tvd_two_way": ("pairs of columns are off by {}", "real data by {}"),
    "association_kept": ("{} of the relations between columns are kept", "real data keeps {}"),
    "detection_auroc": ("a classifier tells real from synthetic rows with AUROC {}", "real data: {}"),
}


def answers(subject: Subject) -> Markup:
    evaluation, few = subject.evaluation, caution(subject.evaluation)
    cards = grid(_faithful(evaluation), _useful(evaluation), _safe(subject))
    return section("short", "In short", notice(few) if few else None, cards)


def headlines(evaluation: Evaluation) -> Markup:
    """One gauge per headline figure, each with what real data scores."""
    scores = {metric: evaluation.score(metric.name) for metric in FIDELITY if metric.headline}
    figures = {metric: utility_figures(evaluation)[metric.name] for metric in UTILITY if metric.headline}
    found: list[tuple[Metric, float | None, float | None, str | None]]
    found = [(metric, s.value, s.ceiling, s.omitted) for metric, s in scores.items()]
    found += [(metric, f.synthetic, f.real, f.omitted) for metric, f in figures.items()]
    cards = [_gauged(evaluation, metric, v, ceiling) for metric, v, ceiling, _ in found if v is not None]
    missing = [(metric.title, why or "") for metric, v, _, why in found if v is None]
    return section(
        "scores",
        "Headline scores, and what real data would score",
        paragraph(
            "No table can be more faithful than real rows are to each other. So each figure was also measured between "
            "two random halves of the real table (for models: with models trained on real rows). That is the ceiling, "
            "drawn as a blue line: a synthetic table that reaches it is as good as new real rows."
        ),
        grid(*cards),
        not_measured(missing),
    )


def _gauged(evaluation: Evaluation, metric: Metric, value: float, ceiling: float | None) -> Markup:
    found = cautious(verdict(metric, value, ceiling), evaluation)
    low, high = metric.low or 0.0, 1.0 if metric.high is None else metric.high
    beside = f"real data: {number(ceiling)}" if ceiling is not None else "too few real rows for a ceiling"
    says = f"{metric.title}: {number(value)}; {beside}"
    return card(
        metric.title,
        found,
        paragraph(number(value), class_="big"),
        gauge(low, high, value, ceiling, says),
        paragraph(f"{beside}; {better(metric)} ({number(low)} to {number(high)})", class_="quiet small"),
        paragraph(metric.meaning, class_="small"),
    )


def _faithful(evaluation: Evaluation) -> Markup:
    """As good as the worst of the headline figures, each of which is told under its verdict."""
    scores = [evaluation.score(metric.name) for metric in FIDELITY if metric.headline]
    told: dict[Verdict, list[str]] = {}
    for score in scores:
        metric, value, ceiling = METRICS[score.metric], score.value, score.ceiling
        if value is not None:
            told.setdefault(verdict(metric, value, ceiling), []).append(_said(metric, value, ceiling))
    ranked = sorted(told, key=lambda found: ORDER.index(found.tone))
    sentences = [f"{found.words.capitalize()}: {'; '.join(told[found])}." for found in ranked]
    if missing := [METRICS[score.metric].title.lower() for score in scores if score.value is None]:
        sentences.append(f"Not measured: {', '.join(missing)}.")
    worst = ranked[0] if ranked else Verdict("unknown", NOT_MEASURED)
    return card("Is it faithful?", cautious(worst, evaluation), *map(paragraph, sentences))


def _said(metric: Metric, value: float, ceiling: float | None) -> str:
    words, beside = SAID[metric.name]
    shown = number if metric.better == "nearer" else percent
    return words.format(shown(value)) + ("" if ceiling is None else f" ({beside.format(shown(ceiling))})")


def _useful(evaluation: Evaluation) -> Markup:
    figure = utility_figures(evaluation)["auroc"]
    if figure.synthetic is None or figure.real is None or evaluation.utility is None:
        return card("Is it useful?", Verdict("unknown", NOT_MEASURED), paragraph(f"Not measured: {figure.omitted}."))
    view = evaluation.utility
    rows = "rows it never saw" if view.tested_on_unseen else "real rows (also the synthesizer's: optimistic)"
    return card(
        "Is it useful?",
        cautious(verdict(METRICS["auroc"], figure.synthetic, figure.real), evaluation),
        paragraph(
            f"Models trained on it to predict “{view.target}” score {number(figure.synthetic)} on {rows}; trained on "
            f"as many real rows they score {number(figure.real)} (AUROC: 1 is perfect, 0.5 is chance; mean of "
            f"{count(len(view.classifiers), 'model')})."
        ),
    )


def _safe(subject: Subject) -> Markup:
    found, words = leaks(subject)
    if subject.failed:
        broken = paragraph("The privacy certificate does NOT hold for this table, so nothing is promised.")
        return card("Is it safe?", Verdict("poor", "certificate does not hold"), broken, paragraph(words))
    return card(
        "Is it safe?",
        cautious(found, subject.evaluation),
        paragraph(words),
        paragraph(_promise(subject), class_="small quiet"),
    )


def _promise(subject: Subject) -> str:
    """What stands behind the table, when attacks that fail prove nothing."""
    if subject.certificate is None:
        return "Attacks that fail prove nothing; only a privacy certificate is a promise, and none was given."
    claim = subject.certificate.claim
    if claim.epsilon is None:
        return "Attacks that fail prove nothing, and the certificate promises no limit (see Privacy certificate)."
    simulated = ", of a simulation" if subject.certificate.simulated else ""
    return (
        f"Attacks that fail prove nothing; the promise is the certificate{simulated}: ε = {number(claim.epsilon)}, "
        f"δ = {claim.delta:g} (see Privacy certificate)."
    )
