"""Square maps of how strongly columns belong together: deep colour for strong, none for nothing at all."""

from __future__ import annotations

from collections.abc import Sequence

from fedsynth.report.charts import drawing, text
from fedsynth.report.lettering import fitted
from fedsynth.report.markup import Markup, element
from fedsynth.report.words import number

CELL = 18.0
MARGIN = 116.0  # for the names

Matrix = Sequence[Sequence[float]]


def heatmap(names: Sequence[str], values: Matrix, strongest: float, says: str) -> Markup:
    """Cells from colourless at 0 to full at ±`strongest`; negative ones in the second colour."""
    side = len(names) * CELL
    parts: list[Markup] = []
    for row, name in enumerate(names):
        y = MARGIN + row * CELL
        parts.append(text(MARGIN - 5, y + CELL - 5, fitted(name, MARGIN - 7), anchor="end"))
        parts.append(_upright(MARGIN + (row + 0.72) * CELL, MARGIN - 5, fitted(name, MARGIN - 7)))
        parts += [_cell(names, row, column, value, y, strongest) for column, value in enumerate(values[row])]
    parts.append(element("rect", x=MARGIN, y=MARGIN, width=side, height=side, class_="frame"))
    return drawing(MARGIN + side + 2, says, *parts, width=MARGIN + side + 2, class_="heat")


def difference(real: Matrix, synthetic: Matrix) -> list[list[float]]:
    return [[s - r for r, s in zip(left, right, strict=True)] for left, right in zip(real, synthetic, strict=True)]


def _cell(names: Sequence[str], row: int, column: int, value: float, y: float, strongest: float) -> Markup:
    return element(
        "rect",
        element("title", f"{names[row]} × {names[column]}: {number(value)}"),
        x=MARGIN + column * CELL,
        y=y,
        width=CELL,
        height=CELL,
        class_="plus" if value >= 0 else "minus",
        fill_opacity=min(1.0, abs(value) / strongest),
    )


def _upright(x: float, y: float, content: str) -> Markup:
    return element("text", content, x=x, y=y, transform=f"rotate(-90 {x:.1f} {y:.1f})")
