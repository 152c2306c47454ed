"""The gate: a table is let out only if every limit is *shown* to be kept.

A limit is held against the unfavourable end of its figure's interval, so a table never passes because noise happened to
flatter it (but for one chance in twenty, limit by limit); and a budget too small to tell keeps the gate closed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from synth.assessment.record import Figure, Verdict, figure_of
from synth.assessment.settings import GateSettings


def judge(gate: GateSettings | None, figures: Mapping[str, Figure]) -> list[Verdict]:
    """Every limit's verdict; without a gate there is none."""
    limits = gate.limits if gate else {}
    return [
        Verdict(limit=name, bound=bound, outcome=_outcome(name, bound, figures[figure_of(name)]))
        for name, bound in limits.items()
    ]


def _outcome(limit: str, bound: float, figure: Figure) -> Literal["passed", "failed", "undecided"]:
    low, high = figure.low, figure.high
    if limit.startswith("minimum_"):
        low, high, bound = -high, -low, -bound
    if high <= bound:
        return "passed"
    return "failed" if low > bound else "undecided"
