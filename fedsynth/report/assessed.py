"""What the parties themselves found, under differential privacy: the only figures here that may be published."""

from __future__ import annotations

from fedsynth.report.markup import Content, Markup, table
from fedsynth.report.parts import alarm, paragraph
from fedsynth.report.words import number
from synth.assessment.record import AssessmentRecord, figure_of

MEANINGS = {
    "auroc": "A scorecard trained on the table ranks the parties' rows this well; 0.5 is chance.",
    "accuracy": "Share of the parties' rows that the scorecard predicts right.",
    "tvd_one_way": "Distance of the columns, in coarse bins; 0 is equal, 1 is disjoint.",
    "tvd_two_way": "Distance of pairs of columns, in coarse bins.",
    "copy_share": "Share of the parties' rows that are in the table word for word.",
    "copy_excess": "What of that share coincidence does not explain.",
}


def is_complete(record: AssessmentRecord) -> bool:
    """Whether every figure is a known one, and every verdict about one of them."""
    judged = {figure_of(verdict.limit) for verdict in record.verdicts}
    return judged <= record.figures.keys() <= MEANINGS.keys()


def assessed(record: AssessmentRecord | None) -> list[Markup]:
    """The certified assessment as a table, after a notice if the gate is closed; nothing where there was none."""
    if record is None:
        return []
    limits: dict[str, list[str]] = {name: [] for name in record.figures}
    for verdict in record.verdicts:
        limits[figure_of(verdict.limit)].append(f"{verdict.limit} {verdict.bound:g}: {verdict.outcome}")
    rows: list[list[Content]] = [
        [
            name,
            number(figure.value),
            f"{number(figure.low)} to {number(figure.high)}",
            "; ".join(limits[name]) or "–",
            MEANINGS[name],
        ]
        for name, figure in record.figures.items()
    ]
    cost = "without a proven ε" if record.epsilon is None else f"for ε = {record.epsilon:.3g}, part of the ε above"
    words = (
        f"Assessed by the parties on the rows they trained on, in noisy sums, {cost}. Each end of an interval holds "
        f"with {record.confidence:.0%} confidence, noise being the only error counted."
    )
    found = [
        paragraph(words),
        table(["figure", "estimate", "between", "gate", "what it means"], rows, class_="figures"),
    ]
    closed = f"This table is WITHHELD by the gate of its plan: {record.reasons()}."
    return [alarm(closed), *found] if record.withheld else found
