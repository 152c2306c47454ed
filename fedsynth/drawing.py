"""Rows from a finished model, without asking any party and without further cost in privacy."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from fedsynth.model_file import Model
from synth.errors import InputError
from synth.plan import Plan


def draw_rows(model: Model, rows: int, where: Mapping[str, str], seed: int) -> pd.DataFrame:
    """`where` fixes labels of categorical and boolean columns."""
    _check_conditions(model.plan, where)
    return model.draw(rows, seed, dict(where) or None)


def _check_conditions(plan: Plan, conditions: Mapping[str, str]) -> None:
    for column, label in conditions.items():
        if column not in plan.modelled.discrete:
            names = ", ".join(plan.modelled.discrete)
            raise InputError(f"--where: '{column}' is no categorical or boolean column; there are: {names}")
        labels = plan.modelled.discrete[column].labels
        if label not in labels:
            raise InputError(f"--where: '{label}' is no label of '{column}'; its labels are: {', '.join(labels)}")
