"""Made-up patients of three made-up hospitals, for a sandbox that nobody brings a table to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from fedsynth.plan_content import new_plan

HOSPITALS = ("north", "south", "west")
ROWS = 2000  # of each
EPSILON, DELTA = 1.0, 1e-6  # what the policy of a new home allows

SCHEMA: dict[str, Any] = {
    "columns": {
        "age": {"kind": "integer", "min": 18, "max": 100},
        "sex": {"kind": "categorical", "categories": ["f", "m"]},
        "smoker": {"kind": "boolean", "false": "no", "true": "yes"},
        "pressure": {"kind": "integer", "min": 80, "max": 220},
        "ward": {"kind": "categorical", "categories": ["medicine", "surgery", "heart"]},
        "nights": {"kind": "integer", "min": 0, "max": 60},
        "readmitted": {"kind": "categorical", "categories": ["no", "yes"]},
    },
    "target": "readmitted",
}


def patients(hospital: str, rows: int = ROWS) -> pd.DataFrame:
    """Nobody's rows: drawn from rules that are written down here, the same ones every time."""
    rng = np.random.default_rng(1 + HOSPITALS.index(hospital))
    age = np.clip(rng.normal(58 + 4 * HOSPITALS.index(hospital), 17, rows), 18, 100).astype(int)
    smoker = rng.random(rows) < 0.35 - age / 500
    pressure = np.clip(rng.normal(105 + 0.45 * age + 6 * smoker, 14), 80, 220).astype(int)
    ward = np.where(pressure > 150, "heart", np.where(rng.random(rows) < 0.5, "medicine", "surgery"))
    nights = np.clip(rng.gamma(2, 1 + age / 40), 0, 60).astype(int)
    again = rng.random(rows) < 1 / (1 + np.exp(5.5 - age / 30 - nights / 5 - smoker))
    return pd.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["f", "m"], rows),
            "smoker": np.where(smoker, "yes", "no"),
            "pressure": pressure,
            "ward": ward,
            "nights": nights,
            "readmitted": np.where(again, "yes", "no"),
        }
    )


def example_plan() -> dict[str, Any]:
    rows = dict.fromkeys(HOSPITALS, ROWS)
    return new_plan("three-hospitals", SCHEMA, rows, epsilon=EPSILON, delta=DELTA)
