"""Which pairs the model is made of: those that noise does not explain, the target's first, as many as fit in memory.

A pair's worth is its interaction, the part of its table that no sum of two margins explains, in units of the noise: the
sum of squares beyond what noise alone would give. That test asks every contrast once, so a weak relation of two yes-no
columns is seen that drowns in the noise of four cells' absolute differences. A forest of the worthiest pairs comes
first, so that as many columns as possible are connected before memory is spent on cycles.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from synth.counting.estimates import Measurement
from synth.counting.structure import model_bytes
from synth.encoding.contingency import Clique
from synth.encoding.scales import Floats

SIGNIFICANT = 2.0  # standard deviations above what independent columns would show


def select(
    columns: Sequence[Measurement],
    tables: dict[Clique, Measurement],
    target: int | None,
    most_bytes: float,
    required: Sequence[Clique] = (),
) -> list[Clique]:
    """Pairs worth modelling, worthiest first, after the `required` cliques."""
    sizes = [one.counts.size for one in columns]
    worth = {clique: _worth(table, columns) for clique, table in tables.items()}
    ordered = sorted(
        (clique for clique, value in worth.items() if value > 0), key=lambda c: (target not in c, -worth[c], c)
    )
    chosen: list[Clique] = []
    component = list(range(len(sizes)))

    def take(clique: Clique) -> None:
        if clique not in chosen and model_bytes([*chosen, clique], sizes) <= most_bytes:
            chosen.append(clique)
            joined = {component[column] for column in clique}
            component[:] = [min(joined) if label in joined else label for label in component]

    for clique in required:
        take(clique)
    for forest in (True, False):
        for clique in ordered:
            if forest == (component[clique[0]] != component[clique[1]]):
                take(clique)
    return chosen


def ranked(columns: Sequence[Measurement], tables: dict[Clique, Measurement]) -> list[Clique]:
    """All pairs, the most surprising first, significant or not."""
    return sorted(tables, key=lambda clique: (-_surprise(tables[clique], columns), clique))


def _worth(table: Measurement, columns: Sequence[Measurement]) -> float:
    """How far the interaction is beyond noise; 0 where that is not significant."""
    surprise = _surprise(table, columns)
    return surprise if surprise > SIGNIFICANT else 0.0


def _surprise(table: Measurement, columns: Sequence[Measurement]) -> float:
    """The interaction's sum of squares in units of the noise: standard deviations above what is expected of it."""
    first, second = (_shares(columns[column].counts) for column in table.clique)
    rows = max(float(np.mean([columns[column].counts.sum() for column in table.clique])), 1.0)
    off = table.counts - rows * np.outer(first, second)
    off = off - off.mean(axis=0) - off.mean(axis=1, keepdims=True) + off.mean()
    contrasts = max((len(first) - 1) * (len(second) - 1), 1)
    return (float((off**2 / table.variance).sum()) - contrasts) / sqrt(2 * contrasts)


def _shares(counts: Floats) -> Floats:
    positive = np.maximum(counts, 0.0)
    total = positive.sum()
    return positive / total if total > 0 else np.full(len(counts), 1 / len(counts))
