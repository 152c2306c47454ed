"""The top of the page: is it faithful, is it useful, is it safe? One sentence each, then the headline scores."""

from __future__ import annotations

from fedsynth.report.charts import gauge
from fedsynth.report.markup import Markup
from fedsynth.report.parts import card, grid, paragraph, section
from fedsynth.report.subject import Subject, UtilityFigure, utility_figures
from fedsynth.report.words import Verdict, better, count, number, percent, verdict
from synth.metrics.evaluation import Evaluation, Score
from synth.metrics.registry import FIDELITY, METRICS, UTILITY, Metric

ORDER = ("poor", "fair", "good")
NO_LEAK = "They learned no more about people in the data than about strangers."
NO_CONTROL = "Rows that the synthesizer never saw (--holdout) are needed for that."


def answers(subject: Subject) -> Markup:
    evaluation = subject.evaluation
    return section("short", "In short", grid(_faithful(evaluation), _useful(evaluation), _safe(subject)))


def headlines(evaluation: Evaluation) -> Markup:
    """One gauge per headline figure, each with what real data scores."""
    cards = [_score(METRICS[metric.name], evaluation.score(metric.name)) for metric in FIDELITY if metric.headline]
    figures = utility_figures(evaluation)
    cards += [_figure(metric, figures[metric.name]) for metric in UTILITY if metric.headline]
    return section(
        "scores",
        "Headline scores, and what real data would score",
        paragraph(
            "No table can be more faithful than real rows are to each other. So each figure was also measured between "
            "two random halves of the real table (for models: with models trained on real rows). That is the ceiling, "
            "drawn as a blue line: a synthetic table that reaches it is as good as new real rows."
        ),
        grid(*cards),
    )


def _score(metric: Metric, score: Score) -> Markup:
    return _gauged(metric, score.value, score.ceiling, score.omitted)


def _figure(metric: Metric, figure: UtilityFigure) -> Markup:
    return _gauged(metric, figure.synthetic, figure.real, figure.omitted)


def _gauged(metric: Metric, value: float | None, ceiling: float | None, omitted: str | None) -> Markup:
    found = verdict(metric, value, ceiling)
    if value is None:
        reason = f"Not measured: {omitted}."
        return card(metric.title, found, paragraph(reason), paragraph(metric.meaning, class_="quiet small"))
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
    single, kept = evaluation.score("tvd_one_way"), evaluation.score("association_kept")
    verdicts = [verdict(METRICS[s.metric], s.value, s.ceiling) for s in (single, evaluation.score("tvd_two_way"), kept)]
    known = [found for found in verdicts if found.tone in ORDER]
    worst = min(known, key=lambda found: ORDER.index(found.tone)) if known else Verdict("unknown", "cannot be judged")
    sentences = []
    if single.value is not None:
        compared = (
            "" if single.ceiling is None else f" (between two halves of the real table: {percent(single.ceiling)})"
        )
        sentences.append(
            f"To make a column's histogram right, {percent(single.value)} of its cells would have to change, on "
            f"average{compared}."
        )
    if kept.value is not None:
        sentences.append(f"{percent(kept.value)} of the relations between columns are kept.")
    return card("Is it faithful?", worst, paragraph(" ".join(sentences) or "No figure could be measured."))


def _useful(evaluation: Evaluation) -> Markup:
    figure = utility_figures(evaluation)["auroc"]
    if figure.synthetic is None or figure.real is None or evaluation.utility is None:
        return card("Is it useful?", Verdict("unknown", "not measured"), paragraph(f"Not measured: {figure.omitted}."))
    view = evaluation.utility
    rows = "rows it never saw" if view.tested_on_unseen else "real rows (also the synthesizer's: optimistic)"
    return card(
        "Is it useful?",
        verdict(METRICS["auroc"], figure.synthetic, figure.real),
        paragraph(
            f"Models trained on it to predict “{view.target}” score {number(figure.synthetic)} on {rows}; trained on "
            f"the real table they score {number(figure.real)} (AUROC: 1 is perfect, 0.5 is chance; mean of "
            f"{count(len(view.classifiers), 'model')})."
        ),
    )


def _safe(subject: Subject) -> Markup:
    evaluation = subject.evaluation
    strong = [risk for risk in evaluation.risks if not risk.weak_evidence and risk.metric != "pi"]
    judged = [risk for risk in strong if risk.value is not None and risk.null is not None]
    flagged = [METRICS[name].title.lower() for name in evaluation.flagged]
    tried = f"{len(judged)} of {count(len(strong), 'attack')} could be judged"
    if flagged:
        found = Verdict("poor", "attacks succeed")
        words = f"Attacks learn more about people in the data than about strangers: {', '.join(flagged)}."
    elif len(judged) < len(strong):
        found = Verdict("unknown", "not fully tested")
        words = f"{tried}. {NO_LEAK if judged else NO_CONTROL}"
    else:
        found = Verdict("good", "no attack succeeded")
        words = f"{tried}. {NO_LEAK}"
    return card("Is it safe?", found, paragraph(words), paragraph(_promise(subject), class_="small quiet"))


def _promise(subject: Subject) -> str:
    """What stands behind the table, when attacks that fail prove nothing."""
    if subject.certificate is None:
        return "Attacks that fail prove nothing; only a privacy certificate is a promise, and none was given."
    if failed := subject.failed:
        return f"The privacy certificate does NOT hold for this table: {failed[0].what} {failed[0].detail}."
    claim = subject.certificate.claim
    if claim.epsilon is None:
        return "Attacks that fail prove nothing, and the certificate promises no limit (see Privacy certificate)."
    simulated = ", of a simulation" if subject.certificate.simulated else ""
    return (
        f"Attacks that fail prove nothing; the promise is the certificate{simulated}: ε = {number(claim.epsilon)}, "
        f"δ = {claim.delta:g} (see Privacy certificate)."
    )
