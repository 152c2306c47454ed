"""Which pairs the model is made of: those that noise does not explain, the target's first, as many as fit in memory.

A pair's worth is its L1 distance from independence less what the noise alone would give. A forest of the worthiest
pairs comes first, so that as many columns as possible are connected before memory is spent on cycles.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, sqrt

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
    ranked = sorted(
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
        for clique in ranked:
            if forest == (component[clique[0]] != component[clique[1]]):
                take(clique)
    return chosen


def _worth(table: Measurement, columns: Sequence[Measurement]) -> float:
    """Rows that independence would put into wrong cells, beyond noise; 0 where that is not significant."""
    first, second = (_shares(columns[column].counts) for column in table.clique)
    rows = max(float(np.mean([columns[column].counts.sum() for column in table.clique])), 1.0)
    distance = float(np.abs(table.counts - rows * np.outer(first, second)).sum())
    sigmas = np.sqrt(table.variance)
    noise = sqrt(2 / pi) * float(sigmas.sum())
    spread = sqrt((1 - 2 / pi) * float((sigmas**2).sum()))
    return distance - noise if distance - noise > SIGNIFICANT * spread else 0.0


def _shares(counts: Floats) -> Floats:
    positive = np.maximum(counts, 0.0)
    total = positive.sum()
    return positive / total if total > 0 else np.full(len(counts), 1 / len(counts))
