"""m-way total variation: do combinations of several columns occur as often as they should?

Following the federated WAE and VertiGAN papers: half the L1 distance of the cell frequencies of m columns, averaged
over 100 random combinations drawn once by seed (the same for every method). Numeric columns are cut into the public
bins. With few rows and many cells this is far above 0 even between two samples of one population: read it beside its
real-vs-real ceiling.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from synth.metrics.fidelity import joint_shares, total_variation
from synth.metrics.tables import IntArray, Rows, Table, table_of
from synth.schema import Schema


def avd(
    real: Rows, synthetic: Rows, schema: Schema, *, ways: int = 4, combinations_drawn: int = 100, seed: int = 0
) -> float:
    """Mean m-way total variation distance, 0..1; 0 is best. With fewer columns than `ways`, over all of them."""
    left, right = table_of(real, schema, "the real table"), table_of(synthetic, schema, "the synthetic table")
    distances = [_distance(left, right, names) for names in _draw(left.columns, ways, combinations_drawn, seed)]
    return float(np.mean(distances))


def _draw(columns: list[str], ways: int, wanted: int, seed: int) -> list[tuple[str, ...]]:
    ways = min(ways, len(columns))
    if comb(len(columns), ways) <= wanted:
        return list(combinations(columns, ways))
    rng = np.random.default_rng(seed)
    drawn: set[tuple[int, ...]] = set()
    while len(drawn) < wanted:
        drawn.add(tuple(sorted(rng.choice(len(columns), ways, replace=False).tolist())))
    return [tuple(columns[i] for i in chosen) for chosen in sorted(drawn)]


def _distance(real: Table, synthetic: Table, names: tuple[str, ...]) -> float:
    return total_variation(*joint_shares(_cells(real, names), _cells(synthetic, names)))


def _cells(table: Table, names: tuple[str, ...]) -> IntArray:
    """One number per row that names its cell."""
    joint = np.zeros(table.rows, dtype=np.int64)
    for name in names:
        joint = joint * table.cells(name) + table.discretized(name)
    return joint
