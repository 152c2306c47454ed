"""What a figure of an evaluation is, before it is measured: its words, its range, which way is better."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from synth.metrics.comparison import Comparison
from synth.metrics.support import Support

Better = Literal["higher", "lower", "nearer"]  # nearer: to `ideal`

HALVES = "the same figure between two random halves of the real rows"

QUADRATIC_ROWS = 5_000


@dataclass(frozen=True)
class Metric:
    name: str
    title: str
    meaning: str
    better: Better
    low: float | None
    high: float | None
    ideal: float
    ceiling: str
    headline: bool = False


@dataclass(frozen=True, kw_only=True)
class FidelityMetric(Metric):
    """`measure` gives None where the figure does not exist; `absent` then says why. `rows` caps costly ones."""

    measure: Callable[[Comparison], float | None]
    absent: str
    rows: int | None


def fidelity(
    name: str,
    title: str,
    meaning: str,
    measure: Callable[[Comparison], float | None],
    *,
    better: Better = "lower",
    low: float | None = 0.0,
    high: float | None = 1.0,
    ideal: float = 0.0,
    absent: str = "",
    rows: int | None = None,
    headline: bool = False,
) -> FidelityMetric:
    return FidelityMetric(
        name, title, meaning, better, low, high, ideal, HALVES, headline, measure=measure, absent=absent, rows=rows
    )


def support(
    name: str,
    title: str,
    meaning: str,
    part: Callable[[Support], float],
    *,
    better: Better = "higher",
    high: float | None = 1.0,
) -> FidelityMetric:
    def measure(c: Comparison) -> float | None:
        return None if c.support is None else part(c.support)

    absent = "a table has no more than five rows"
    return fidelity(
        name, title, meaning, measure, better=better, high=high, ideal=1.0, absent=absent, rows=QUADRATIC_ROWS
    )
