"""Sequences: do they move as the real ones do? Figures with their controls, fans over the steps, and a map of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedsynth.report.charts import WIDTH, drawing, text
from fedsynth.report.markup import Content, Markup, element, table
from fedsynth.report.parts import card, grid, legend, paragraph, section
from fedsynth.report.words import number
from synth.metrics.evaluation_views import Fan, SequenceFigure, SequenceView

HEIGHT, PAD = 150.0, 10.0
BOLD, FINE, FAINT = 2.2, 1.0, 0.4  # the middle of a fan, its other lines, single sequences
MIDDLE = 2  # of the five lines
WORDS = {
    "predictive_mae": "error of the next step, learned from it",
    "detected_by_gru": "told apart by a recurrent network (0 to 0.5)",
    "detected_by_trees": "told apart by its measures (0 to 0.5)",
    "mmd": "distance of whole sequences (MMD²)",
    "autocorrelation_distance": "difference of autocorrelation",
    "transition_distance": "difference of what follows what",
    "change_ratio": "mean change of a step, relative to real",
}
CONTROLS = {
    "persistence": "predicting “as it was”, which needs no data",
    "data_free": "learned from random walks that have seen no data",
    "constant": "predicting the middle of the range",
}


def dynamics(view: SequenceView | None) -> Markup | None:
    """Nothing where the table has no sequences."""
    if view is None:
        return None
    told = (
        f"{view.synthetic_sequences:,} synthetic and {view.real_sequences:,} real sequences, compared over "
        f"{view.steps} steps. An error of prediction means nothing by itself: the controls below have seen no data."
    )
    return section(
        "dynamics",
        "Sequences: do they move as the real ones do?",
        paragraph(told),
        grid(card("Figures", None, _figures(view.figures)), card("Controls of the error", None, _controls(view))),
        legend(),
        grid(*map(_fan, view.fans), card("All sequences, on a plane", None, _map(view))),
        paragraph(_membership(view), class_="small quiet"),
    )


def _figures(figures: Sequence[SequenceFigure]) -> Markup:
    rows: list[list[Content]] = [
        [
            WORDS.get(each.name, each.name.replace("lag_", "correlation over a lag of ")),
            number(each.value),
            "" if each.real is None else number(each.real),
        ]
        for each in figures
    ]
    return table(["", "this table", "real sequences"], rows)


def _controls(view: SequenceView) -> Markup:
    rows: list[list[Content]] = [[CONTROLS.get(name, name), number(value)] for name, value in view.controls.items()]
    return table(["", "error"], rows)


def _membership(view: SequenceView) -> str:
    if view.membership_auroc is None:
        return "Whether members can be told from others by nearness was not measured: it needs holdout rows."
    return (
        f"Membership attack per entity (nearness to a synthetic sequence): AUROC {number(view.membership_auroc)}; "
        "0.5 tells nothing. It is a smoke test; the promise is the certificate's."
    )


def _fan(fan: Fan) -> Markup:
    groups = [("real", fan.real), ("synthetic", fan.synthetic)]
    single = [("synthetic", fan.synthetic_paths), ("real", fan.real_paths)]
    every = [value for _, lines in groups + single for line in lines for value in line]
    place = _Scale(min(every), max(every))
    parts = [
        place.line(line, style, BOLD if n == MIDDLE else FINE) for style, of in groups for n, line in enumerate(of)
    ]
    parts += [place.line(line, style, FAINT) for style, lines in single for line in lines]
    says = f"{fan.name} over the steps: 5, 25, 50, 75 and 95 % of the sequences lie below; thin lines are single ones"
    return card(fan.name, None, drawing(HEIGHT + 18, says, *parts, text(PAD, HEIGHT + 14, "steps →")))


@dataclass(frozen=True)
class _Scale:
    low: float
    high: float

    def line(self, values: Sequence[float], style: str, width: float) -> Markup:
        across = (WIDTH - 2 * PAD) / max(len(values) - 1, 1)
        up = (HEIGHT - 2 * PAD) / ((self.high - self.low) or 1.0)
        points = [(PAD + n * across, HEIGHT - PAD - (value - self.low) * up) for n, value in enumerate(values)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        return element("polyline", points=path, class_=f"{style} whisker path", stroke_width=width)


def _map(view: SequenceView) -> Markup:
    points = view.real_points + view.synthetic_points
    left, right = min(x for x, _ in points), max(x for x, _ in points)
    bottom, top = min(y for _, y in points), max(y for _, y in points)

    def dot(point: tuple[float, float], style: str) -> Markup:
        x = PAD + (point[0] - left) / ((right - left) or 1.0) * (WIDTH - 2 * PAD)
        y = HEIGHT - PAD - (point[1] - bottom) / ((top - bottom) or 1.0) * (HEIGHT - 2 * PAD)
        return element("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=1.8, class_=style)

    groups = (("real", view.real_points), ("synthetic", view.synthetic_points))
    dots = [dot(point, style) for style, of in groups for point in of]
    return drawing(HEIGHT, "first two principal components of whole sequences, real and synthetic", *dots)
