"""Rows that an audit plants: as unusual as the schema allows, because the promise is about every possible row."""

from __future__ import annotations

import numpy as np

from synth.constraints import Constraint, enforce
from synth.encoding.records import Records, Values
from synth.encoding.scales import code_count, scale_of
from synth.schema import Boolean, Categorical, Schema


def extreme_rows(schema: Schema) -> list[Records]:
    """Single rows at the corners of the domain: everything lowest, everything highest, everything missing or last."""
    return [Records({name: _corner(schema, name, which) for name in schema.released}) for which in range(3)]


def random_rows(schema: Schema, count: int, rng: np.random.Generator, constraints: list[Constraint]) -> Records:
    """Rows uniform over the declared domain, column by column: hardly anybody's neighbours, still possible rows."""
    columns: dict[str, Values] = {}
    for name, column in schema.released.items():
        if isinstance(column, Categorical | Boolean):
            columns[name] = rng.integers(0, code_count(column), count)
        else:
            scale = scale_of(column)
            columns[name] = scale.snap(rng.uniform(scale.lowest, scale.highest, count))
    return enforce(Records(columns), constraints, schema)


def _corner(schema: Schema, name: str, which: int) -> Values:
    column = schema.released[name]
    if isinstance(column, Categorical | Boolean):
        return np.array([[0, len(column.labels) - 1, code_count(column) - 1][which]], dtype=np.int64)
    scale = scale_of(column)
    last = np.nan if column.missing else scale.highest
    return np.array([[scale.lowest, scale.highest, last][which]])
