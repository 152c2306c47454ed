"""One overlay per column: bars for labels, a filled and a drawn histogram for numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fedsynth.report.charts import Bar, bars, steps
from fedsynth.report.markup import Content, Markup, table
from fedsynth.report.parts import card, grid, legend, paragraph, section
from fedsynth.report.subject import Subject
from fedsynth.report.words import Verdict, number, percent, position
from synth.metrics.evaluation import ColumnView, Summary
from synth.schema import Datetime, Integer, NumericColumn, Schema

MOST_BARS = 12
DAY_SECONDS = 86_400
WORST = 3
SPREAD_FAIR, SPREAD_POOR = 0.15, 0.3  # how far a spread may be off, as a share of the real one


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
            f"have to change.{beside} Farthest off, and first below: {worst}."
        ),
        legend(),
        grid(*(_column(view, subject.schema) for view in ranked)),
    )


def _column(view: ColumnView, schema: Schema) -> Markup:
    says = f"{view.name}: distribution in the real and the synthetic table"
    drawn = _numbers(view, schema.numeric[view.name], says) if view.labels is None else (bars(_bars(view), says),)
    kind = f"{view.kind}; off by {percent(view.figures['tvd'] or 0.0)}"
    description = schema.columns[view.name].description
    said = paragraph(kind + (f" — {description}" if description else ""), class_="quiet small")
    return card(view.name, _wrong_spread(view), said, *drawn)


def _wrong_spread(view: ColumnView) -> Verdict | None:
    """Shares can be right and the spread wrong: a few values far out are enough."""
    real, made = view.real_summary, view.synthetic_summary
    if real is None or made is None or real.deviation <= 0:
        return None
    off = made.deviation / real.deviation - 1
    if abs(off) < SPREAD_FAIR:
        return None
    words = f"spread {'+' if off > 0 else '−'}{round(100 * abs(off))} %"
    return Verdict("poor" if abs(off) >= SPREAD_POOR else "fair", words)


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
    return (steps(edges, real, synthetic, _ticks(view.edges or [0.0, 1.0], column), says), _summary(view, column))


def _ticks(edges: Sequence[float], column: NumericColumn) -> list[str]:
    """Texts for the left end, the middle and the right end; a constant has one."""
    low, high = edges[0], edges[-1]
    middle = (low + high) / 2
    if isinstance(column, Integer):
        low, middle, high = math.ceil(low), round(middle), math.floor(high)
    if low >= high:
        return ["", position(middle, column), ""]
    return [position(value, column) for value in (low, middle, high)]


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


def _summary(view: ColumnView, column: NumericColumn) -> Markup:
    left, right = _described(view.real_summary, column), _described(view.synthetic_summary, column)
    rows: list[list[Content]] = [[name, left[name], right[name]] for name in left]
    rows.append(["empty cells", percent(view.real_empty), percent(view.synthetic_empty)])
    return table(["", "real", "synthetic"], rows, class_="numbers")


def _described(summary: Summary | None, column: NumericColumn) -> dict[str, str]:
    if summary is None:
        return dict.fromkeys(("mean", "median", "spread"), "–")
    is_time = isinstance(column, Datetime)
    return {
        "mean": position(summary.mean, column),
        "median": position(summary.median, column),
        "spread": f"{number(summary.deviation / DAY_SECONDS)} days" if is_time else number(summary.deviation),
    }
