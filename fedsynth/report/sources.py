"""The end of the page: the promise, every figure in one table, and where everything came from."""

from __future__ import annotations

from fedsynth.report.assessed import assessed
from fedsynth.report.markup import Content, Markup, element, table
from fedsynth.report.parts import alarm, paragraph, section
from fedsynth.report.subject import Subject, attack_rate, is_counted, utility_figures
from fedsynth.report.words import better, count, interval, number
from synth.certificate.promise import spoken
from synth.metrics.attacks.risk import Interval
from synth.metrics.evaluation import Evaluation
from synth.metrics.metric import Metric
from synth.metrics.registry import METRICS, UTILITY

HOLDS = {True: "holds", False: "FAILS", None: "not checked"}


def certificate(subject: Subject) -> Markup:
    title = "Privacy certificate"
    if subject.certificate is None:
        words = (
            "No certificate was given, so nothing is promised here about privacy. A release by fedsynth has one: add "
            "it with --certificate certificate.json."
        )
        return section("certificate", title, paragraph(words))
    found = subject.certificate
    rows: list[list[Content]] = [[finding.what, HOLDS[finding.holds], finding.detail] for finding in subject.findings]
    return section(
        "certificate",
        title,
        _does_not_hold(subject),
        paragraph(spoken(found, subject.findings)),
        paragraph(f"What could be checked of it (run {found.run}, profile {found.profile}):"),
        table(["what", "", "detail"], rows),
        *assessed(found.assessment),
    )


def _does_not_hold(subject: Subject) -> Markup | None:
    """Before the promise, because nobody may rely on it."""
    if not subject.failed:
        return None
    words = "; ".join(f"{finding.what}: {finding.detail}" for finding in subject.failed)
    return alarm(f"This certificate does NOT hold for this table. {words}.")


def all_figures(evaluation: Evaluation) -> Markup:
    """Every metric of the registry with its value, or why it has none."""
    return section(
        "figures",
        "All figures",
        paragraph(
            "“Real data” is the ceiling: two halves of the real table for fidelity, models trained on real rows for "
            "usefulness, and strangers for attacks."
        ),
        table(["figure", "this table", "real data", "what it means"], _rows(evaluation), class_="figures"),
    )


def _rows(evaluation: Evaluation) -> list[list[Content]]:
    rows = [
        _row(METRICS[score.metric], number(score.value), number(score.ceiling), score.omitted)
        for score in evaluation.scores
    ]
    figures = utility_figures(evaluation)
    for metric in UTILITY:
        figure = figures[metric.name]
        rows.append(_row(metric, number(figure.synthetic), number(figure.real), figure.omitted))
    for risk in evaluation.risks:
        rate, metric = attack_rate(risk), METRICS[risk.metric]
        row = _row(metric, _interval(rate), _interval(risk.null), risk.omitted)
        if is_counted(risk) and risk.null is not None and risk.value is not None:
            row[-1] = f"{row[-1]} Risk that remains: {interval(risk.value)}."
        rows.append(row)
    return rows


def _row(metric: Metric, value: str, real: str, omitted: str | None) -> list[Content]:
    direction = "" if better(metric) in metric.meaning else f" {better(metric).capitalize()}."
    reason = f" Not measured: {omitted}." if omitted else ""
    return [metric.title, value, real, f"{metric.meaning}{direction}{reason}"]


def _interval(found: Interval | None) -> str:
    return "–" if found is None else interval(found)


def sources(subject: Subject) -> Markup:
    evaluation, origin = subject.evaluation, subject.provenance
    facts: list[list[Content]] = []
    for file in origin.tables:
        digest = element("code", f"SHA-256 {file.sha256}") if file.sha256 else "pooled from the parties; no single file"
        facts.append([file.role, element("span", f"{file.name}, {count(file.rows, 'row')}", element("br"), digest)])
    facts += [
        ["schema", element("span", origin.schema_origin, element("br"), element("code", evaluation.schema_digest))],
        ["columns", f"{len(evaluation.columns)} compared; {_left_out(origin.left_out)}"],
        ["measured", f"{origin.date}, in {number(evaluation.seconds)} s, seed {evaluation.seed}"],
        ["software", ", ".join([f"fedsynth {origin.version}", *(f"{n} {v}" for n, v in origin.libraries.items())])],
        ["sampling", _lines(evaluation.samplings or ["none: every figure looked at all rows"])],
        ["left out", _omissions(evaluation)],
    ]
    return section("sources", "Where this comes from", table(["", ""], facts, class_="facts"))


def _lines(sentences: list[str]) -> Markup:
    return element("ul", *(element("li", sentence) for sentence in sentences))


def _left_out(names: list[str]) -> str:
    return f"identifiers are never compared: {', '.join(names)}" if names else "none left out"


def _omissions(evaluation: Evaluation) -> str:
    missing = [METRICS[score.metric].title for score in evaluation.scores if score.value is None]
    missing += [METRICS[n].title for n, figure in utility_figures(evaluation).items() if figure.synthetic is None]
    missing += [METRICS[risk.metric].title for risk in evaluation.risks if risk.value is None]
    return f"{', '.join(missing)} (reasons under All figures)" if missing else "nothing"
