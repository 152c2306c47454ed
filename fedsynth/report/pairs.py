"""How columns belong together, in the real table, in the synthetic one, and where they differ."""

from __future__ import annotations

from fedsynth.report.heatmaps import Matrix, difference, full_width, heatmap
from fedsynth.report.markup import Content, Markup, element
from fedsynth.report.parts import card, grid, legend, paragraph, section
from fedsynth.report.words import number
from synth.metrics.evaluation import Evaluation, MatrixView

MOST_COLUMNS = 32  # whose names can still be read on paper
READABLE = 0.85  # pixels a unit: maps stand side by side only where they need not be drawn smaller
CARD_EDGES = 34.0  # pixels
FAINTEST_FULL = 0.2  # a map of differences smaller than this would shout about nothing
WORST = 5


def pairs(evaluation: Evaluation) -> Markup:
    if evaluation.pairs is None:
        return section("pairs", "Pairs of columns", paragraph("There is only one column, so there are no pairs."))
    shown, left_out = _most_different(evaluation.pairs.mixed)
    change = difference(shown.real, shown.synthetic)
    full = max(FAINTEST_FULL, max(abs(value) for row in change for value in row))
    return section(
        "pairs",
        "Pairs of columns",
        paragraph(
            "Each square is one pair: the deeper its colour, the more one column tells about the other (0 nothing, 1 "
            "everything; Pearson's correlation between numbers, Cramér's V between labels, the correlation ratio "
            "between a number and a label). The first two maps should look alike, and the third should be pale."
        ),
        paragraph(left_out) if left_out else None,
        legend(real="positive, or synthetic stronger", synthetic="negative, or synthetic weaker"),
        grid(
            _map("Real table", shown, shown.real, 1.0),
            _map("Synthetic table", shown, shown.synthetic, 1.0),
            _map("Difference (synthetic − real)", shown, change, full),
            class_="grid maps",
            style=f"--map: {READABLE * full_width(shown.rows) + CARD_EDGES:.0f}px",
        ),
        paragraph(_worst(shown, change), class_="small"),
    )


def _map(title: str, view: MatrixView, values: Matrix, full: float) -> Markup:
    drawn: Content = heatmap(view.rows, values, full, f"{title}: association of {len(view.rows)} columns")
    scale = paragraph(f"Full colour at ±{number(full)}.", class_="quiet small")
    return card(title, None, scale, element("div", drawn, class_="scroll"))


def _worst(view: MatrixView, change: Matrix) -> str:
    found = sorted(
        ((abs(change[i][j]), i, j) for i in range(len(view.rows)) for j in range(i + 1, len(view.rows))), reverse=True
    )
    told = [
        f"{view.rows[i]} with {view.rows[j]} (real {number(view.real[i][j])}, synthetic {number(view.synthetic[i][j])})"
        for _, i, j in found[:WORST]
    ]
    return f"Largest differences: {'; '.join(told)}."


def _most_different(view: MatrixView) -> tuple[MatrixView, str | None]:
    """A map of more columns than can be told apart shows the worst ones, in the schema's order."""
    if len(view.rows) <= MOST_COLUMNS:
        return view, None
    change = difference(view.real, view.synthetic)
    ranked = sorted(range(len(view.rows)), key=lambda place: -sum(map(abs, change[place])))
    kept = sorted(ranked[:MOST_COLUMNS])

    def part(matrix: Matrix) -> list[list[float]]:
        return [[matrix[i][j] for j in kept] for i in kept]

    names = [view.rows[place] for place in kept]
    shown = MatrixView(name=view.name, rows=names, columns=names, real=part(view.real), synthetic=part(view.synthetic))
    words = f"Shown are the {MOST_COLUMNS} of {len(view.rows)} columns whose relations differ most."
    return shown, words
