"""Square maps of how strongly columns belong together: deep colour for strong, none for nothing at all."""

from __future__ import annotations

from collections.abc import Sequence

from fedsynth.report.charts import drawing, label
from fedsynth.report.lettering import margin
from fedsynth.report.markup import Markup, element
from fedsynth.report.words import number

SMALLEST_CELL, LARGEST_CELL = 18.0, 44.0
LEAST_SIDE = 200.0  # of the cells together, so that a map of few columns is no stamp
MOST_FOR_NAMES = 150.0  # beside many columns
NARROW_MAP = 380.0  # up to this, names may take what few columns leave

Matrix = Sequence[Sequence[float]]


def heatmap(names: Sequence[str], values: Matrix, strongest: float, says: str) -> Markup:
    """Cells from colourless at 0 to full at ±`strongest`; negative ones in the second colour."""
    cell, edge = _measures(names)
    side = len(names) * cell
    parts: list[Markup] = []
    for row, name in enumerate(names):
        middle = edge + (row + 0.5) * cell + 4
        parts.append(label(edge - 5, middle, name, edge - 7))
        parts.append(label(middle, edge - 5, name, edge - 7, anchor="start", turned=True))
        for column, value in enumerate(values[row]):
            says_pair = f"{name} × {names[column]}: {number(value)}"
            parts.append(_cell(edge + column * cell, edge + row * cell, cell, value / strongest, says_pair))
    parts.append(element("rect", x=edge, y=edge, width=side, height=side, class_="frame"))
    return drawing(full_width(names), says, *parts, width=full_width(names), class_="heat")


def full_width(names: Sequence[str]) -> float:
    """Units from the left end of the names to the right end of the cells."""
    cell, edge = _measures(names)
    return edge + len(names) * cell + 2


def difference(real: Matrix, synthetic: Matrix) -> list[list[float]]:
    return [[s - r for r, s in zip(left, right, strict=True)] for left, right in zip(real, synthetic, strict=True)]


def _measures(names: Sequence[str]) -> tuple[float, float]:
    """The side of a cell, and the room for names."""
    cell = min(LARGEST_CELL, max(SMALLEST_CELL, LEAST_SIDE / len(names)))
    return cell, margin(names, 40.0, max(MOST_FOR_NAMES, NARROW_MAP - len(names) * cell)) + 8.0


def _cell(x: float, y: float, side: float, strength: float, says: str) -> Markup:
    return element(
        "rect",
        element("title", says),
        x=x,
        y=y,
        width=side,
        height=side,
        class_="plus" if strength >= 0 else "minus",
        fill_opacity=min(1.0, abs(strength)),
    )
