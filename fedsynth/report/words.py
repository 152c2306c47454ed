"""Figures in words: how numbers are written, and when a difference to real data is worth mentioning."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Literal

from synth.metrics.attacks.risk import Interval
from synth.metrics.metric import Metric
from synth.schema import Datetime, NumericColumn

Tone = Literal["good", "fair", "poor", "unknown"]

NOT_MEASURED = "not measured"
BETTER = {"higher": "higher is better", "lower": "lower is better", "nearer": "nearer to {ideal} is better"}
# How much farther from the ideal than real data is, as a share of the figure's whole range.
CLOSE, NOTICEABLE = 0.03, 0.10

CLASSIFIERS = {
    "knn": "Nearest neighbours",
    "mlp": "Neural network",
    "random_forest": "Random forest",
    "adaboost": "AdaBoost",
    "decision_tree": "Decision tree",
    "logistic_regression": "Logistic regression",
    "gradient_boosting": "Gradient boosting",
}


@dataclass(frozen=True)
class Verdict:
    tone: Tone
    words: str


def number(value: float | None) -> str:
    """Three significant digits, thousands separated; a figure that does not exist is a dash."""
    if value is None:
        return "–"
    if abs(value) >= 1000 or value == round(value):
        return f"{value:,.0f}"
    if abs(value) < 0.0005:
        return f"{value:.1e}"
    digits = 3 if abs(value) < 1 else 2 if abs(value) < 10 else 1
    return f"{value:.{digits}f}"


def percent(share: float) -> str:
    if 0 < share < 0.0005:
        return "< 0.1\u00a0%"
    if 0.9995 <= share < 1:
        return "> 99.9\u00a0%"  # not quite all
    return f"{100 * share:.1f}\u00a0%"


def interval(found: Interval) -> str:
    return f"{percent(found.value)} ({percent(found.low)} to {percent(found.high)})"


def count(amount: int, noun: str) -> str:
    return f"{amount:,} {noun}{'' if amount == 1 else 's'}"


def position(value: float, column: NumericColumn) -> str:
    """A value of a numeric column; times are counted in seconds from the lowest declared one."""
    if isinstance(column, Datetime):
        return (column.min + dt.timedelta(seconds=value)).strftime("%Y-%m-%d")
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 1000 else number(value)


def better(metric: Metric) -> str:
    return BETTER[metric.better].format(ideal=f"{metric.ideal:g}")


def gap(metric: Metric, value: float, ceiling: float) -> float | None:
    """How much farther from the ideal than real data, as a share of the range. None: the range has no end."""
    if metric.low is None or metric.high is None:
        return None
    if metric.name == "detection_auroc":  # below chance is chance, with some luck
        value, ceiling = max(value, metric.ideal), max(ceiling, metric.ideal)
    span = max(abs(metric.high - metric.ideal), abs(metric.ideal - metric.low))
    return max(0.0, abs(value - metric.ideal) - abs(ceiling - metric.ideal)) / span


def verdict(metric: Metric, value: float | None, ceiling: float | None) -> Verdict:
    """How a figure compares with what real data would score."""
    if value is None:
        return Verdict("unknown", NOT_MEASURED)
    behind = None if ceiling is None else gap(metric, value, ceiling)
    if behind is None:
        return Verdict("unknown", "no scale to judge by")
    if behind <= CLOSE:
        return Verdict("good", "about as good as real data")
    if behind <= NOTICEABLE:
        return Verdict("fair", "somewhat behind real data")
    return Verdict("poor", "clearly behind real data")
