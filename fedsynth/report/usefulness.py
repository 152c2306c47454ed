"""Does a model trained on the synthetic table work on real rows? Bars, with the line that real rows reach."""

from __future__ import annotations

from fedsynth.report.charts import Bar, against_real
from fedsynth.report.markup import Markup
from fedsynth.report.parts import card, grid, legend, paragraph, section
from fedsynth.report.words import CLASSIFIERS, count
from synth.metrics.evaluation import Evaluation, UtilityView
from synth.metrics.metric import Metric
from synth.metrics.registry import UTILITY
from synth.metrics.utility import ALL_CLASSIFIERS, Omission, Scores

CHANCE = {"auroc": 0.5}


def usefulness(evaluation: Evaluation) -> Markup:
    title, view = "Usefulness: models trained on it, tested on real rows", evaluation.utility
    if view is None:
        return section("usefulness", title, paragraph(f"Not measured: {evaluation.utility_omitted}."))
    tested = (
        "real rows that the synthesizer never saw"
        if view.tested_on_unseen
        else "a fifth of the real rows. No holdout was given, and the synthesizer saw these rows: scores are optimistic"
    )
    shown = [metric for metric in UTILITY if metric.name in Scores.__dataclass_fields__]
    return section(
        "usefulness",
        title,
        paragraph(
            f"{count(len(view.classifiers), 'model')} of different kinds learned to predict “{view.target}” from "
            f"{count(view.train_rows, 'synthetic row')}, and again from as many real ones, so that neither table has "
            f"the advantage of size. They were tested on {view.test_rows:,} {tested}. A bar that reaches the line "
            "means: for this purpose the synthetic table is as good as the real one."
        ),
        legend(real="trained on real rows (line, second number)", synthetic="trained on synthetic rows (bar)"),
        grid(*(_measure(metric, view) for metric in shown)),
        *(paragraph(words, class_="small quiet") for words in _omissions(view)),
    )


def _measure(metric: Metric, view: UtilityView) -> Markup:
    rows = [
        Bar(CLASSIFIERS.get(name, name), getattr(scores.real, metric.name), getattr(scores.synthetic, metric.name))
        for name, scores in view.classifiers.items()
        if isinstance(scores.real, Scores) and isinstance(scores.synthetic, Scores)
    ]
    meaning = paragraph(metric.meaning, class_="quiet small")
    if not rows:
        return card(metric.title, None, meaning, paragraph("No model could be trained; the reasons are below."))
    return card(metric.title, None, meaning, against_real(rows, metric.title, CHANCE.get(metric.name)))


def _omissions(view: UtilityView) -> list[str]:
    """Models that have no score, by reason."""
    reasons: dict[str, list[str]] = {}
    for name in ALL_CLASSIFIERS:
        scores = view.classifiers.get(name)
        if scores is None:
            reasons.setdefault("left out of this quick look", []).append(CLASSIFIERS.get(name, name))
            continue
        for side, entry in (("synthetic", scores.synthetic), ("real", scores.real)):
            if isinstance(entry, Omission):
                reason = f"no score when trained on {side} rows: {entry.reason}"
                reasons.setdefault(reason, []).append(CLASSIFIERS.get(name, name))
    return [f"{', '.join(names)}: {reason}." for reason, names in reasons.items()]
