"""Linkability: two institutions know different columns about one person. Does the synthetic table join them?

Anonymeter's attack: find the nearest synthetic row by the first half of the columns and by the second half; a link is
made when it is the same row. Columns are split at random by seed, at most ten in all, as the FinDiff paper does.
"""

from __future__ import annotations

import numpy as np

from synth.errors import InputError
from synth.metrics.attacks.gower import nearest
from synth.metrics.attacks.risk import Attempts
from synth.metrics.tables import Rows, Table, table_of
from synth.schema import Schema

ATTACKS = 500
MOST_COLUMNS = 10


def linkability(
    real: Rows, synthetic: Rows, schema: Schema, *, holdout: Rows | None = None, attacks: int = ATTACKS, seed: int = 0
) -> Attempts:
    """`real` are the rows the synthesizer was trained on; `holdout` rows it never saw."""
    rng = np.random.default_rng(seed)
    members, known = table_of(real, schema, "the real table"), table_of(synthetic, schema, "the synthetic table")
    first, second = split_columns(members.columns, rng)
    targets = members.sample(attacks, rng)
    blind = int((rng.integers(known.rows, size=targets.rows) == rng.integers(known.rows, size=targets.rows)).sum())
    made = _links(targets, known, first, second)
    if holdout is None:
        return Attempts(targets.rows, made, blind)
    controls = table_of(holdout, schema, "the holdout table").sample(attacks, rng)
    return Attempts(targets.rows, made, blind, controls.rows, _links(controls, known, first, second))


def split_columns(columns: list[str], rng: np.random.Generator) -> tuple[list[str], list[str]]:
    if len(columns) < 2:
        raise InputError("linkability needs two released columns to link; the schema has one")
    chosen = rng.permutation(columns)[:MOST_COLUMNS].tolist()
    half = len(chosen) // 2
    return chosen[:half], chosen[half:]


def _links(targets: Table, synthetic: Table, first: list[str], second: list[str]) -> int:
    return int((nearest(targets, synthetic, first) == nearest(targets, synthetic, second)).sum())
