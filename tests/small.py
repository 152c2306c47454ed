"""A tiny table with every kind of column, and plans over it: what most tests stand on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from synth.plan import Plan, parse_plan

SCHEMA: dict[str, Any] = {
    "columns": {
        "patient": {"kind": "identifier"},
        "age": {"kind": "integer", "min": 0, "max": 100},
        "dose": {"kind": "continuous", "min": 0, "max": 10, "decimals": 2, "missing": True},
        "sex": {"kind": "categorical", "categories": ["f", "m"]},
        "ward": {"kind": "categorical", "categories": ["a", "b", "c"], "other": "elsewhere", "missing": True},
        "smoker": {"kind": "boolean", "false": "no", "true": "yes"},
        "admitted": {"kind": "datetime", "min": "2020-01-01", "max": "2021-12-31"},
        "died": {"kind": "categorical", "categories": ["no", "yes"]},
    },
    "target": "died",
}


def table(rows: int, seed: int = 0) -> pd.DataFrame:
    """Cells as text, with dependencies worth learning: dose rises with age, death with both."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 95, rows)
    dose = np.clip(age / 12 + rng.normal(0, 1, rows), 0, 10)
    died = rng.random(rows) < 1 / (1 + np.exp(6 - age / 12))
    days = rng.integers(0, 700, rows)
    return pd.DataFrame(
        {
            "patient": [f"p{n}" for n in range(rows)],
            "age": age.astype(str),
            "dose": ["" if rng.random() < 0.1 else f"{value:.2f}" for value in dose],
            "sex": rng.choice(["f", "m"], rows),
            "ward": rng.choice(["a", "b", "c", "zz", ""], rows),
            "smoker": rng.choice(["no", "yes"], rows),
            "admitted": (pd.Timestamp("2020-01-01") + pd.to_timedelta(days, "D")).strftime("%Y-%m-%d"),
            "died": np.where(died, "yes", "no"),
        }
    )


def plan_content(synthesizer: dict[str, Any], parties: int = 3, rows: int = 200, **changes: Any) -> dict[str, Any]:
    content: dict[str, Any] = {
        "name": "small",
        "schema": SCHEMA,
        "parties": [{"name": f"party-{n}", "rows": rows} for n in range(1, parties + 1)],
        "synthesizer": synthesizer,
        "privacy": {"epsilon": 3.0, "delta": 1e-5},
        "statistics": {"bins": 32},
    }
    return content | changes


def plan_of(synthesizer: dict[str, Any], parties: int = 3, rows: int = 200, **changes: Any) -> Plan:
    return parse_plan(plan_content(synthesizer, parties, rows, **changes))
