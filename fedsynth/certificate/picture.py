"""What ε does to a belief, as points to draw: the same picture in HTML and PDF."""

from __future__ import annotations

from fedsynth.certificate.content import belief_after
from fedsynth.report.markup import Markup, element

POINTS = 60
SIDE, LEFT, BOTTOM = 260, 64, 40  # of the square, and room for words


def band(epsilon: float) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """Lowest and highest belief afterwards over the belief before, both from 0 to 1."""
    befores = [place / POINTS for place in range(1, POINTS)]
    bounds = [belief_after(before, epsilon) for before in befores]
    low = [(0.0, 0.0), *((x, y) for x, (y, _) in zip(befores, bounds, strict=True)), (1.0, 1.0)]
    high = [(0.0, 0.0), *((x, y) for x, (_, y) in zip(befores, bounds, strict=True)), (1.0, 1.0)]
    return low, high


def as_svg(epsilon: float) -> Markup:
    low, high = band(epsilon)
    ring = " ".join(f"{_x(x):.1f},{_y(y):.1f}" for x, y in [*high, *reversed(low)])
    says = f"Belief afterwards over belief before: the band of ε = {epsilon:.4g} around the diagonal"
    texts = [
        element("text", "believed before", x=_x(0.5), y=SIDE + BOTTOM - 6, text_anchor="middle", class_="quiet"),
        element(
            "text",
            "afterwards",
            x=12,
            y=_y(0.5),
            text_anchor="middle",
            class_="quiet",
            transform=f"rotate(-90 12 {_y(0.5)})",
        ),
        *(element("text", f"{100 * v:.0f} %", x=_x(v), y=SIDE + 16, text_anchor="middle") for v in (0, 0.5, 1)),
        *(element("text", f"{100 * v:.0f} %", x=LEFT - 6, y=_y(v) + 4, text_anchor="end") for v in (0.5, 1)),
    ]
    return element(
        "svg",
        element("title", says),
        element("rect", x=LEFT, y=8, width=SIDE - 8, height=SIDE - 8, class_="frame"),
        element("polygon", points=ring, class_="band"),
        element("line", x1=_x(0), y1=_y(0), x2=_x(1), y2=_y(1), class_="chance"),
        *texts,
        viewBox=f"0 0 {SIDE + LEFT + 16} {SIDE + BOTTOM}",
        role="img",
        class_="picture",
    )


def _x(value: float) -> float:
    return LEFT + value * (SIDE - 8)


def _y(value: float) -> float:
    return SIDE - value * (SIDE - 8)
