"""Singling out: does a description taken from the synthetic table fit exactly one real person?

Anonymeter's multivariate attack: take a synthetic row and three columns; category = value, number ≥ value if it lies
above the median, else ≤. Descriptions that fit exactly one synthetic row are tried on the real rows.

How many descriptions fit exactly one row depends on the number of rows, so the real table and the control set must be
equally large: the larger one is sampled down. NOTE[DIFF]: Anonymeter instead fits a model of how the control rate
grows with rows; at equal sizes both are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from synth.errors import InputError
from synth.metrics.attacks.risk import Attempts
from synth.metrics.tables import Rows, Table, table_of
from synth.schema import Schema

ATTACKS = 500
COLUMNS = 3
MOST_TRIES = 100_000
"""Descriptions tried before giving up on finding `ATTACKS` that fit one synthetic row."""

HOPELESS_TRIES = 10_000
"""Descriptions tried before giving up on finding a single one."""
FIRST_LOOK_ROWS = 1_000
"""Most descriptions fit two of the first rows already and need not be counted in all."""


@dataclass(frozen=True)
class Condition:
    column: str
    relation: str  # one of "==", ">=", "<=", "empty"
    value: float  # a code or a number; ignored for "empty"

    def holds(self, table: Table) -> NDArray[np.bool_]:
        if self.relation == "==":
            return np.equal(table.codes[self.column], self.value)
        values = table.numbers[self.column]
        if self.relation == "empty":
            return np.isnan(values)
        return np.greater_equal(values, self.value) if self.relation == ">=" else np.less_equal(values, self.value)


Description = tuple[Condition, ...]


def singling_out(
    real: Rows, synthetic: Rows, schema: Schema, *, holdout: Rows | None = None, attacks: int = ATTACKS, seed: int = 0
) -> Attempts | None:
    """None: no description fits exactly one synthetic row, so the attack cannot start."""
    rng = np.random.default_rng(seed)
    members, known = table_of(real, schema, "the real table"), table_of(synthetic, schema, "the synthetic table")
    controls = None if holdout is None else table_of(holdout, schema, "the holdout table")
    if controls is not None:
        rows = min(members.rows, controls.rows)
        members, controls = members.sample(rows, rng), controls.sample(rows, rng)
    descriptions = unique_descriptions(known, attacks, rng)
    if not descriptions:
        return None
    blind = [_random_description(known, rng) for _ in descriptions]
    made, at_random = isolated(members, descriptions), isolated(members, blind)
    if controls is None:
        return Attempts(len(descriptions), made, at_random)
    return Attempts(len(descriptions), made, at_random, len(descriptions), isolated(controls, descriptions))


def isolated(table: Table, descriptions: list[Description]) -> int:
    """How many descriptions fit exactly one row."""
    return sum(_matches(table, description) == 1 for description in descriptions)


def unique_descriptions(synthetic: Table, wanted: int, rng: np.random.Generator) -> list[Description]:
    """Up to `wanted` different descriptions that each fit exactly one synthetic row."""
    if len(synthetic.columns) < 2:
        raise InputError("singling out needs at least two released columns; the schema has one")
    filled = {name: synthetic.filled(name) for name in synthetic.numbers}
    medians = {name: float(np.median(values)) if len(values) else 0.0 for name, values in filled.items()}
    few = synthetic.take(np.arange(min(synthetic.rows, FIRST_LOOK_ROWS)))
    found: dict[Description, None] = {}
    possible = synthetic.rows * comb(len(synthetic.columns), min(COLUMNS, len(synthetic.columns)))
    for tries in range(min(MOST_TRIES, 5 * possible)):  # five draws per description: 99 % of them are seen
        if len(found) == wanted or (not found and tries == HOPELESS_TRIES):
            break
        row = int(rng.integers(synthetic.rows))
        description = tuple(_condition(synthetic, name, row, medians) for name in _columns(synthetic, rng))
        if _matches(few, description) <= 1 and description not in found and _matches(synthetic, description) == 1:
            found[description] = None
    return list(found)


def _columns(table: Table, rng: np.random.Generator) -> list[str]:
    drawn: list[str] = rng.choice(table.columns, min(COLUMNS, len(table.columns)), replace=False).tolist()
    return sorted(drawn)


def _condition(table: Table, name: str, row: int, medians: dict[str, float]) -> Condition:
    if name in table.codes:
        return Condition(name, "==", float(table.codes[name][row]))
    value = float(table.numbers[name][row])
    if np.isnan(value):
        return Condition(name, "empty", 0.0)
    return Condition(name, ">=" if value > medians[name] else "<=", value)


def _random_description(table: Table, rng: np.random.Generator) -> Description:
    """Blind guessing: values of unrelated rows, direction by coin."""
    conditions = []
    for name in _columns(table, rng):
        condition = _condition(table, name, int(rng.integers(table.rows)), {name: 0.0})
        if condition.relation in (">=", "<="):
            condition = Condition(name, str(rng.choice([">=", "<="])), condition.value)
        conditions.append(condition)
    return tuple(conditions)


def _matches(table: Table, description: Description) -> int:
    fits = description[0].holds(table)
    for condition in description[1:]:
        fits = fits & condition.holds(table)
    return int(fits.sum())
