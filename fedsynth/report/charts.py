"""Small drawings as inline SVG. Colours are classes of the style sheet, so they follow light, dark and paper.

Every drawing is `WIDTH` units wide and about as many pixels on a telephone, so its text stays readable everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedsynth.report.lettering import fitted, margin
from fedsynth.report.markup import Markup, element
from fedsynth.report.words import number, percent
from synth.metrics.attacks.risk import Interval

WIDTH = 360.0
MOST_BESIDE = 165.0  # units beside a chart that its labels may take
LARGEST, SMALLEST = 1.4, 0.6  # pixels a unit: neither a poster in a wide card nor illegible on a telephone


@dataclass(frozen=True)
class Bar:
    """One label with its share in the real and in the synthetic table."""

    label: str
    real: float
    synthetic: float


@dataclass(frozen=True)
class Span:
    """One estimate with its interval; `style` is a class of the style sheet."""

    label: str
    estimate: Interval
    style: str


def drawing(height: float, says: str, *parts: Markup, width: float = WIDTH, class_: str = "chart") -> Markup:
    """Larger drawings than the window shrink, and scroll where their words would become too small."""
    return element(
        "svg",
        *parts,
        viewBox=f"0 0 {width:g} {height:g}",
        style=f"max-width: {LARGEST * width:g}px; min-width: {SMALLEST * width:g}px",
        role="img",
        aria_label=says,
        class_=class_,
    )


def text(x: float, y: float, content: str, *, anchor: str = "start", class_: str | None = None) -> Markup:
    return element("text", content, x=x, y=y, text_anchor=anchor, class_=class_)


def label(x: float, y: float, words: str, room: float, *, anchor: str = "end", turned: bool = False) -> Markup:
    """Shortened where it must be, and then whole in a tooltip. `turned` words read upwards."""
    short, turn = fitted(words, room), f"rotate(-90 {x:.1f} {y:.1f})" if turned else None
    whole = element("title", words) if short != words else None
    return element("text", whole, short, x=x, y=y, text_anchor=anchor, transform=turn)


def bars(rows: Sequence[Bar], says: str) -> Markup:
    """Pairs of horizontal bars, scaled to the longest, each pair with its two shares. Labels stand before their bars,
    or above them where there would be no room."""
    needed = margin((row.label for row in rows), 60.0, WIDTH) + 8.0
    above = needed > MOST_BESIDE
    left, head, right = (0.0, 16.0, 116.0) if above else (needed, 0.0, 116.0)
    pitch = 26.0 + head
    longest = max([max(row.real, row.synthetic) for row in rows] + [1e-9])
    scale = (WIDTH - left - right) / longest
    parts: list[Markup] = []
    for place, row in enumerate(rows):
        y = place * pitch + head + 3
        named = (
            label(0, y - 5, row.label, WIDTH, anchor="start") if above else label(left - 6, y + 14, row.label, left - 6)
        )
        parts += [
            named,
            element("rect", x=left, y=y, width=row.real * scale, height=9.0, class_="real"),
            element("rect", x=left, y=y + 10, width=row.synthetic * scale, height=9.0, class_="synthetic"),
            text(WIDTH, y + 14, f"{percent(row.real)} · {percent(row.synthetic)}", anchor="end", class_="quiet"),
        ]
    return drawing(len(rows) * pitch, says, *parts)


def steps(
    edges: Sequence[float], real: Sequence[float], synthetic: Sequence[float], ticks: Sequence[str], says: str
) -> Markup:
    """Two histograms over the same edges: the real one filled, the synthetic one as a line. `ticks` are the texts at
    the left end, the middle and the right end."""
    height, floor = 168.0, 144.0
    span, top = edges[-1] - edges[0], max([*real, *synthetic, 1e-12])

    def x(edge: float) -> float:
        return 1.0 + (edge - edges[0]) / span * (WIDTH - 2.0)

    def outline(shares: Sequence[float]) -> str:
        points = [f"M{x(edges[0]):.1f} {floor:.1f}"]
        for start, end, share in zip(edges, edges[1:], shares, strict=False):
            y = floor - share / top * (floor - 8.0)
            points.append(f"L{x(start):.1f} {y:.1f}L{x(end):.1f} {y:.1f}")
        return "".join(points) + f"L{x(edges[-1]):.1f} {floor:.1f}"

    places = ((1.0, "start"), (WIDTH / 2, "middle"), (WIDTH - 1.0, "end"))
    return drawing(
        height,
        says,
        element("path", d=outline(real) + "Z", class_="real area"),
        element("path", d=outline(synthetic), class_="synthetic outline"),
        element("line", x1=0, x2=WIDTH, y1=floor, y2=floor, class_="axis"),
        *(text(place, height - 6, tick, anchor=anchor) for (place, anchor), tick in zip(places, ticks, strict=True)),
    )


def against_real(rows: Sequence[Bar], says: str, chance: float | None = None) -> Markup:
    """One bar from 0 to 1 per row for the synthetic table, crossed by a line where real data gets to."""
    left, right, pitch, head = 142.0, 92.0, 24.0, 22.0
    scale = WIDTH - left - right
    floor = head + len(rows) * pitch
    parts = [_grid(left, scale, head, floor, ("0", "0.5", "1"), chance)]
    for place, row in enumerate(rows):
        y, real = head + place * pitch + 4, left + row.real * scale
        parts += [
            label(left - 6, y + 12, row.label, left - 6),
            element("rect", x=left, y=y, width=row.synthetic * scale, height=15.0, class_="synthetic"),
            element("line", x1=real, x2=real, y1=y - 3, y2=y + 18, class_="real mark"),
            text(WIDTH, y + 12, f"{number(row.synthetic)} · {number(row.real)}", anchor="end", class_="quiet"),
        ]
    return drawing(floor + 18, says, *parts)


def intervals(rows: Sequence[Span], says: str) -> Markup:
    """Estimates as dots with their 95 % intervals as lines, on one scale from 0."""
    left, right, pitch, head = margin((row.label for row in rows), 90.0, MOST_BESIDE) + 10.0, 62.0, 26.0, 8.0
    end = round_end(max(row.estimate.high for row in rows))
    scale, floor = (WIDTH - left - right) / end, head + len(rows) * pitch
    ends = [f"{100 * end * half / 2:g}\u00a0%" for half in range(3)]
    parts = [_grid(left, WIDTH - left - right, head, floor, ends)]
    for place, row in enumerate(rows):
        y = head + (place + 0.5) * pitch
        low, middle, high = (
            left + bound * scale for bound in (row.estimate.low, row.estimate.value, row.estimate.high)
        )
        parts += [
            label(left - 8, y + 4, row.label, left - 8),
            element("line", x1=low, x2=max(high, low + 1), y1=y, y2=y, class_=f"{row.style} whisker"),
            element("circle", cx=middle, cy=y, r=5.0, class_=row.style),
            text(WIDTH, y + 4, percent(row.estimate.value), anchor="end", class_="quiet"),
        ]
    return drawing(floor + 18, says, *parts)


def gauge(low: float, high: float, value: float, ceiling: float | None, says: str) -> Markup:
    """Where a figure lies between its ends, with a line where real data lies."""
    width = WIDTH - 2.0

    def x(figure: float) -> float:
        return 1.0 + min(1.0, max(0.0, (figure - low) / (high - low))) * width

    mark = [] if ceiling is None else [element("line", x1=x(ceiling), x2=x(ceiling), y1=2, y2=26, class_="real mark")]
    return drawing(
        28.0,
        says,
        element("rect", x=1, y=8, width=width, height=12, rx=6, class_="track"),
        element("rect", x=1, y=8, width=max(x(value) - 1.0, 6.0), height=12, rx=6, class_="synthetic"),
        *mark,
    )


def round_end(largest: float) -> float:
    """The end of a scale that holds `largest`."""
    return next((end for end in (0.02, 0.05, 0.1, 0.2, 0.5) if largest <= end), 1.0)


def _grid(
    left: float, width: float, top: float, floor: float, ends: Sequence[str], chance: float | None = None
) -> Markup:
    """Vertical lines at the quarters of a scale, `ends` at its start, middle and end, a dashed line at `chance`."""
    parts: list[Markup] = []
    for quarter in range(5):
        x = left + width * quarter / 4
        parts.append(element("line", x1=x, x2=x, y1=top, y2=floor, class_="grid"))
        if quarter % 2 == 0:
            parts.append(text(x, floor + 13, ends[quarter // 2], anchor="middle", class_="quiet"))
    if chance is not None:
        x = left + width * chance
        parts.append(element("line", x1=x, x2=x, y1=top - 6, y2=floor, class_="chance"))
        parts.append(text(x, top - 7, "chance", anchor="middle", class_="quiet"))
    return element("g", *parts)
