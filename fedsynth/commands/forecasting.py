"""A forecast in words, for whoever is about to spend a budget."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from synth.forecast import Forecast, forecast
from synth.plan import Plan

CERTAIN = 1.96  # standard deviations within which 95 of 100 results lie
TENTH = 0.1


def show_forecast(console: Console, plan: Plan) -> None:
    found = forecast(plan)
    if found is None:
        return
    console.print(f"Forecast from plan and schema alone ({found.rows:,} rows, ε = {found.epsilon:g}):", markup=False)
    for line in in_words(found):
        console.print(Padding(Text(line), (0, 0, 0, 2)))
    if found.warning is not None:
        console.print(Text(found.warning, style="bold red" if found.verdict == "noise" else "yellow"))


def in_words(found: Forecast) -> list[str]:
    lines = [
        f"A share of 10 % comes out as {_around(found.share_error)}, 95 of 100 times.",
        f"Noise in a column's histogram: {_usual_and_worst(found.columns)}.",
    ]
    if found.heaps:
        name, least = max(found.heaps.items(), key=lambda item: item[1])
        lines.append(f"A single value of a number is seen from {_percent(least)} of the rows on ({name}).")
    if found.pairs and found.pair_share_error is not None:
        named = {f"{first} × {second}": noise for (first, second), noise in found.pairs.items()}
        lines.append(f"Noise in a pair's table: {_usual_and_worst(named)}.")
    if found.step_noise is not None:
        lines.append(
            f"Noise in a training step: {_percent(found.step_noise)} of what its rows can do, in every weight."
        )
    return lines


def _usual_and_worst(noise: Mapping[str, float]) -> str:
    name, worst = max(noise.items(), key=lambda item: item[1])
    return f"{_percent(median(noise.values()))} usually, {_percent(worst)} at worst ({name})"


def _around(error: float) -> str:
    low, high = max(TENTH - CERTAIN * error, 0.0), min(TENTH + CERTAIN * error, 1.0)
    return f"{100 * low:.2f} to {100 * high:.2f} %" if error < 0.002 else f"{100 * low:.1f} to {100 * high:.1f} %"


def _percent(share: float) -> str:
    return "all" if share >= 1 else f"{100 * share:.2g} %"
