"""Inference: knowing everything but one column about a person, does the synthetic table reveal that column?

Anonymeter's attack: guess the value of the nearest synthetic row. Every column is the secret once. A number is guessed
right within 5 % of its true value. Common values are guessed right about anybody, hence the control set.
NOTE[DIFF]: the reference implementation takes 5 % of the *guess*, sign included: every negative guess is right.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from synth.errors import InputError
from synth.metrics.attacks.gower import nearest_without_each
from synth.metrics.attacks.risk import Attempts
from synth.metrics.tables import IntArray, Rows, Table, table_of
from synth.schema import Schema

ATTACKS = 500
RELATIVE_TOLERANCE = 0.05


def inference(
    real: Rows, synthetic: Rows, schema: Schema, *, holdout: Rows | None = None, attacks: int = ATTACKS, seed: int = 0
) -> dict[str, Attempts]:
    """One result per secret column. `holdout` are rows the synthesizer never saw."""
    rng = np.random.default_rng(seed)
    members, known = table_of(real, schema, "the real table"), table_of(synthetic, schema, "the synthetic table")
    if len(members.columns) < 2:
        raise InputError("inference needs a second released column to guess from; the schema has one")
    targets = members.sample(attacks, rng)
    guesses = nearest_without_each(targets, known)
    blind = rng.integers(known.rows, size=targets.rows)
    controls = None if holdout is None else table_of(holdout, schema, "the holdout table").sample(attacks, rng)
    control_guesses = None if controls is None else nearest_without_each(controls, known)
    result = {}
    for name, guess in guesses.items():
        successes = int(_right(targets, known, guess, name).sum())
        at_random = int(_right(targets, known, blind, name).sum())
        if controls is None or control_guesses is None:
            result[name] = Attempts(targets.rows, successes, at_random)
        else:
            right = int(_right(controls, known, control_guesses[name], name).sum())
            result[name] = Attempts(targets.rows, successes, at_random, controls.rows, right)
    return result


def _right(targets: Table, synthetic: Table, guess: IntArray, name: str) -> NDArray[np.bool_]:
    if name in targets.codes:
        return np.equal(targets.codes[name], synthetic.codes[name][guess])
    truth, guessed = targets.numbers[name], synthetic.numbers[name][guess]
    close = np.abs(guessed - truth) <= RELATIVE_TOLERANCE * np.abs(truth)  # False wherever a side is empty
    return close | (np.isnan(truth) & np.isnan(guessed))
