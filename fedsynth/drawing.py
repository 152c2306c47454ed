"""Rows from a finished model, without asking any party and without further cost in privacy."""

from __future__ import annotations

import secrets

import pandas as pd

from fedsynth.conditions import Where, parse_conditions
from fedsynth.model_file import Model


def draw_rows(model: Model, rows: int, where: Where = (), seed: int | None = None) -> pd.DataFrame:
    """Rows that fulfil all conditions (`fedsynth.conditions`); other ones each time unless a seed is given."""
    conditions = parse_conditions(where, model.plan.modelled)
    return model.draw(rows, secrets.randbits(32) if seed is None else seed, conditions)
