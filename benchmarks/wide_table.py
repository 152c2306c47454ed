"""A large table of mixed kinds, made from a seed: 55 columns that hang together through five hidden traits of a person.

25 categorical (2 to 26 labels, some very rare), 5 boolean, 12 continuous, 10 integer (half of them mostly zero),
3 dates; every fifth column has empty cells. The target is a yes or no that the traits decide, with noise.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from synth.plan import parse_schema
from synth.schema import Schema

CATEGORICAL, BOOLEAN, CONTINUOUS, INTEGER, DATE = 24, 6, 12, 10, 3
TRAITS = 5
EMPTY = 0.05
FIRST_DAY = "2000-01-01"
DAYS = 9_000


def wide_schema() -> Schema:
    columns: dict[str, dict[str, object]] = {}
    for number in range(CATEGORICAL):
        columns[f"label{number}"] = {"kind": "categorical", "categories": labels(number)}
    for number in range(BOOLEAN):
        columns[f"flag{number}"] = {"kind": "boolean", "false": "no", "true": "yes"}
    for number in range(CONTINUOUS):
        columns[f"amount{number}"] = {"kind": "continuous", "min": -10, "max": 10, "decimals": 3}
    for number in range(INTEGER):
        columns[f"count{number}"] = {"kind": "integer", "min": 0, "max": 1000}
    for number in range(DATE):
        last = (pd.Timestamp(FIRST_DAY) + pd.Timedelta(days=DAYS)).date().isoformat()
        columns[f"day{number}"] = {"kind": "datetime", "min": FIRST_DAY, "max": last}
    for position, name in enumerate(columns):
        if position % 5 == 0 and name != "flag0":
            columns[name]["missing"] = True
    return parse_schema({"columns": columns, "target": "flag0"})


def labels(number: int) -> list[str]:
    return [f"v{label}" for label in range(2 + number)]


def wide_table(rows: int, seed: int) -> pd.DataFrame:
    """The population is the same for every seed; the seed draws people from it."""
    weights = np.random.default_rng(0).normal(size=(CATEGORICAL + BOOLEAN + CONTINUOUS + INTEGER + DATE, TRAITS))
    rng = np.random.default_rng(seed)
    traits = rng.normal(size=(rows, TRAITS))
    described = wide_schema()
    columns: dict[str, pd.Series] = {}
    for position, (name, column) in enumerate(described.columns.items()):
        score = traits @ weights[position] / np.sqrt(TRAITS) + rng.normal(size=rows) * 0.7
        cells = _cells(name, score)
        columns[name] = cells.mask(rng.random(rows) < EMPTY) if column.missing else cells
    return pd.DataFrame(columns)


def _cells(name: str, score: np.ndarray) -> pd.Series:
    if name.startswith("label"):
        known = labels(int(name.removeprefix("label")))
        codes = np.clip((score + 2) / 4 * len(known), 0, len(known) - 1).astype(np.int64)
        return pd.Series(pd.Categorical.from_codes(codes, pd.Index(known)))
    if name.startswith("flag"):
        return pd.Series(np.where(score > 0.5, "yes", "no"), dtype="category")
    if name.startswith("amount"):
        return pd.Series(np.round(np.clip(score * 2, -10, 10), 3))
    if name.startswith("count"):
        return pd.Series(np.clip(np.floor(np.exp(score * 2) * 10), 0, 1000) * (score > 0)).astype("Int64")
    days = np.clip(np.floor((score + 3) / 6 * DAYS), 0, DAYS - 1).astype("timedelta64[D]")
    return pd.Series(np.datetime64(FIRST_DAY) + days)
