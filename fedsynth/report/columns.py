"""One overlay per column: bars for labels, a filled and a drawn histogram for numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fedsynth.report.charts import Bar, bars, steps
from fedsynth.report.markup import Content, Markup, element, table
from fedsynth.report.parts import card, grid, legend, paragraph, section
from fedsynth.report.subject import Subject
from fedsynth.report.words import Verdict, count, number, percent, position
from synth.metrics.evaluation import ColumnView, Summary
from synth.schema import Datetime, Integer, NumericColumn, Schema

MOST_BARS = 12
DAY_SECONDS = 86_400
WORST = 3
MOST_CARDS = 30  # of the columns farthest off; the others are folded away
FAIR_SPREAD, POOR_SPREAD = 0.2, 0.5  # share by which a standard deviation is wrong


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
            f"have to change.{beside} Farthest off first: {worst}."
        ),
        legend(),
        grid(*(_column(view, subject.schema) for view in ranked[:MOST_CARDS])),
        _folded([_column(view, subject.schema) for view in ranked[MOST_CARDS:]]),
    )


def _folded(cards: list[Markup]) -> Markup | None:
    """The columns that are nearest, for whoever wants to see all of a wide table."""
    if not cards:
        return None
    words = element("summary", f"{count(len(cards), 'more column')}, each nearer than those above")
    return element("details", words, grid(*cards))


def _column(view: ColumnView, schema: Schema) -> Markup:
    says = f"{view.name}: distribution in the real and the synthetic table"
    drawn = _numbers(view, schema.numeric[view.name], says) if view.labels is None else (bars(_bars(view), says),)
    kind = f"{view.kind}; off by {percent(view.figures['tvd'] or 0.0)}"
    description = schema.columns[view.name].description
    return card(
        view.name,
        _spread(view),
        paragraph(kind + (f" — {description}" if description else ""), class_="quiet small"),
        *drawn,
    )


def _spread(view: ColumnView) -> Verdict | None:
    """A mark where a column's spread is far from the real one, which its shape alone can hide."""
    if view.real_summary is None or view.synthetic_summary is None or view.real_summary.deviation <= 0:
        return None
    wrong = view.synthetic_summary.deviation / view.real_summary.deviation - 1
    if abs(wrong) < FAIR_SPREAD:
        return None
    words = f"spread {percent(abs(wrong))} too {'wide' if wrong > 0 else 'narrow'}"
    return Verdict("poor" if abs(wrong) >= POOR_SPREAD else "fair", words)


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
