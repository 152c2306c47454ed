"""One overlay per column: bars for labels, a filled and a drawn histogram for numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fedsynth.report.charts import Bar, bars, steps
from fedsynth.report.markup import Content, Markup, table
from fedsynth.report.parts import card, grid, legend, paragraph, section
from fedsynth.report.subject import Subject
from fedsynth.report.words import number, percent, position
from synth.metrics.evaluation import ColumnView
from synth.schema import Integer, NumericColumn, Schema

MOST_BARS = 12
WORST = 3


def columns(subject: Subject) -> Markup:
    evaluation = subject.evaluation
    ranked = sorted(evaluation.columns, key=lambda view: -(view.figures["tvd"] or 0.0))
    worst = ", ".join(f"{view.name} ({percent(view.figures['tvd'] or 0.0)})" for view in ranked[:WORST])
    ceiling = evaluation.score("tvd_one_way").ceiling
    beside = f" Between two halves of the real table it is {percent(ceiling)} on average." if ceiling else ""
    return section(
        "columns",
        "Column by column",
        paragraph(
            "Where the two shapes cover each other, the column is right. “Off by” is the share of cells that would "
            f"have to change.{beside} Farthest off: {worst}."
        ),
        legend(),
        grid(*(_column(view, subject.schema) for view in evaluation.columns)),
    )


def _column(view: ColumnView, schema: Schema) -> Markup:
    says = f"{view.name}: distribution in the real and the synthetic table"
    drawn = _numbers(view, schema.numeric[view.name], says) if view.labels is None else (bars(_bars(view), says),)
    kind = f"{view.kind}; off by {percent(view.figures['tvd'] or 0.0)}"
    description = schema.columns[view.name].description
    return card(
        view.name, None, paragraph(kind + (f" — {description}" if description else ""), class_="quiet small"), *drawn
    )


def _bars(view: ColumnView) -> list[Bar]:
    """The commonest labels, the others as one bar, empty cells last."""
    found = [Bar(*row) for row in zip(view.labels or [], view.real, view.synthetic, strict=True)]
    if len(found) > MOST_BARS:
        common = sorted(found, key=lambda bar: -max(bar.real, bar.synthetic))[: MOST_BARS - 1]
        rest = [bar for bar in found if bar not in common]
        others = Bar(f"{len(rest)} other labels", sum(b.real for b in rest), sum(b.synthetic for b in rest))
        found = [bar for bar in found if bar in common] + [others]
    if view.real_empty > 0 or view.synthetic_empty > 0:
        found.append(Bar("(empty)", view.real_empty, view.synthetic_empty))
    return found


def _numbers(view: ColumnView, column: NumericColumn, says: str) -> tuple[Content, ...]:
    if view.real_summary is None and view.synthetic_summary is None:
        return (paragraph("Every cell is empty in both tables: nothing to draw."),)
    edges, real, synthetic = view.edges or [], view.real, view.synthetic
    if isinstance(column, Integer):
        edges, real, synthetic = per_whole_number(edges, real, synthetic)
    low, high = (view.edges or [0.0, 1.0])[0], (view.edges or [0.0, 1.0])[-1]
    ticks = [position(value, column) for value in (low, _middle(low, high, column), high)]
    return (steps(edges, real, synthetic, ticks, says), _summary(view, column))


def per_whole_number(
    edges: Sequence[float], real: Sequence[float], synthetic: Sequence[float]
) -> tuple[list[float], list[float], list[float]]:
    """Bins of whole numbers as share per number: bins that hold two numbers beside bins that hold one (or none) would
    draw a comb that is in neither table."""
    firsts = [math.ceil(edge) for edge in edges[:-1]] + [math.floor(edges[-1]) + 1]
    kept = [place for place in range(len(firsts) - 1) if firsts[place + 1] > firsts[place]]
    amounts = [firsts[place + 1] - firsts[place] for place in kept]
    borders = [firsts[place] - 0.5 for place in kept] + [firsts[-1] - 0.5]
    return (
        borders,
        [real[place] / amount for place, amount in zip(kept, amounts, strict=True)],
        [synthetic[place] / amount for place, amount in zip(kept, amounts, strict=True)],
    )


def _middle(low: float, high: float, column: NumericColumn) -> float:
    middle = (low + high) / 2
    return round(middle) if isinstance(column, Integer) else middle


def _summary(view: ColumnView, column: NumericColumn) -> Markup:
    rows: list[list[Content]] = []
    for which, summary, empty in (
        ("real", view.real_summary, view.real_empty),
        ("synthetic", view.synthetic_summary, view.synthetic_empty),
    ):
        if summary is None:
            rows.append([which, "all empty", "", "", percent(empty)])
            continue
        spread = summary.deviation / 86_400 if column.kind == "datetime" else summary.deviation
        unit = " days" if column.kind == "datetime" else ""
        middle = [position(value, column) for value in (summary.mean, summary.median)]
        rows.append([which, *middle, number(spread) + unit, percent(empty)])
    return table(["", "mean", "median", "spread", "empty"], rows, class_="numbers")
