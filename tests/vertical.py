"""The small table cut by columns: a hospital, an insurer and a registry hold different columns of the same people."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from synth.plan import Plan, parse_plan
from tests.small import plan_content, table

COLUMNS = {
    "hospital": ["age", "dose", "ward"],
    "insurer": ["sex", "smoker"],
    "registry": ["admitted", "died"],
}
TWO = {"hospital": ["age", "dose", "ward", "sex"], "insurer": ["smoker", "admitted", "died"]}
NOTARY = TWO | {"notary": []}
AGGREGATOR_DEALS = {"linkage": {"key": "patient", "dealer": "aggregator"}, "secure_sum": {"colluders": 0}}


def content_by_columns(columns: dict[str, list[str]] | None = None, rows: int = 200, **changes: Any) -> dict[str, Any]:
    held = columns or COLUMNS
    parties = [{"name": name, "rows": rows, "columns": names} for name, names in held.items()]
    linkage = {"key": "patient"} | changes.pop("linkage", {})
    content = plan_content({"name": "marginals"}, parties=1, rows=rows, partition="columns", linkage=linkage)
    return content | {"parties": parties} | changes


def plan_by_columns(columns: dict[str, list[str]] | None = None, rows: int = 200, **changes: Any) -> Plan:
    return parse_plan(content_by_columns(columns, rows, **changes))


def tables_by_columns(whole: pd.DataFrame, columns: dict[str, list[str]], seed: int = 0) -> dict[str, pd.DataFrame]:
    """Everybody's part, each in an order of its own."""
    rng = np.random.default_rng(seed)
    return {name: whole[["patient", *held]].iloc[rng.permutation(len(whole))] for name, held in columns.items()}


def whole_table(rows: int, seed: int = 0) -> pd.DataFrame:
    return table(rows, seed)
