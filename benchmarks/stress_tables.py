"""Generated tables that are hard in one way each, with their schemas; the same for every run of a seed.

`heaped`: what people write down (blood pressure in tens, weights in whole kilograms), amounts with a declared bound far
beyond them, balances with two tails, dates on working days, a spike at zero, empty cells. `weak`: yes-no columns of
which each says a little about the target. `mixed`: as many columns as asked for, of all kinds. `numbers`: one number
that almost follows from others. `labels`: five hundred, most of them rare.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from synth.plan import parse_schema
from synth.schema import Schema

YES_NO = {"kind": "boolean", "false": "no", "true": "yes"}


def heaped(rows: int, seed: int) -> tuple[Schema, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    age = rng.integers(30, 65, rows)
    sick = rng.random(rows) < 1 / (1 + np.exp(-(age - 50) / 8))
    upper = _heap(rng, rng.normal(112 + 0.3 * (age - 50) + 14 * sick, 14, rows), favourite=120, reach=10)
    lower = _heap(rng, rng.normal(75 + 6 * sick, 9, rows), favourite=80, reach=7)
    weight = np.round(rng.normal(74, 14, rows), 1)
    pay = np.round(np.exp(rng.normal(5.5, 1.6, rows)), 2)
    balance = np.round(rng.standard_t(2.2, rows) * 900 + np.exp(rng.normal(6.2, 1.4, rows)))
    working = np.array([day for day in range(1400) if (day + 2) % 7 < 5])  # 2020-01-01 was a Wednesday
    day = np.datetime64("2020-01-01") + rng.choice(working, rows).astype("timedelta64[D]")
    gain = np.where(rng.random(rows) < 0.9, 0, rng.choice([3103, 4386, 5178, 7688, 15024, 99999], rows))
    columns = {
        "age": age,
        "upper": np.where(rng.random(rows) < 0.001, upper * 100, upper).clip(-200, 20_000).astype(int),
        "lower": np.where(rng.random(rows) < 0.005, lower * 100, lower).clip(-100, 20_000).astype(int),
        "weight": np.where(rng.random(rows) < 0.8, np.round(weight), weight).clip(10, 200),
        "pay": pay.clip(0, 1e8),
        "balance": balance.clip(-9_000, 200_000).astype(int),
        "day": day.astype(str),
        "gain": gain,
        "smoker": np.where(rng.random(rows) < 0.1, "yes", "no"),
        "sick": np.where(sick, "yes", "no"),
    }
    table = pd.DataFrame(columns).astype(str)
    table.loc[rng.random(rows) < 0.05, "weight"] = ""
    return _schema(HEAPED, "sick"), table


HEAPED: dict[str, dict[str, Any]] = {
    "age": {"kind": "integer", "min": 20, "max": 70},
    "upper": {"kind": "integer", "min": -200, "max": 20_000},
    "lower": {"kind": "integer", "min": -100, "max": 20_000},
    "weight": {"kind": "continuous", "min": 10, "max": 200, "decimals": 1, "missing": True},
    "pay": {"kind": "continuous", "min": 0, "max": 1e8, "decimals": 2},
    "balance": {"kind": "integer", "min": -9_000, "max": 200_000},
    "day": {"kind": "datetime", "min": "2020-01-01", "max": "2023-12-31"},
    "gain": {"kind": "integer", "min": 0, "max": 99_999},
    "smoker": YES_NO,
    "sick": YES_NO,
}


def weak(rows: int, seed: int, columns: int = 300) -> tuple[Schema, pd.DataFrame]:
    """The population is the same for every seed; a model of the real rows reaches an AUROC of about 0.95."""
    fixed = np.random.default_rng(7)
    common, weight = fixed.beta(1, 4, columns - 1).clip(0.02, 0.9), fixed.normal(size=columns - 1)
    rng = np.random.default_rng(seed)
    held = rng.random((rows, columns - 1)) < common
    score = (held - common) @ weight / np.sqrt((weight**2 * common * (1 - common)).sum())
    table = pd.DataFrame(np.where(held, "yes", "no"), columns=[f"c{number}" for number in range(columns - 1)])
    table["target"] = np.where(rng.random(rows) < 1 / (1 + np.exp(1 - 4.4 * score)), "yes", "no")
    return _schema(dict.fromkeys(table.columns, YES_NO), "target"), table


def mixed(rows: int, seed: int, columns: int) -> tuple[Schema, pd.DataFrame]:
    """Labels, yes-no columns, numbers and dates in turn, that hang together through three hidden traits."""
    weights = np.random.default_rng(0).normal(size=(columns, 3))
    rng = np.random.default_rng(seed)
    traits = rng.normal(size=(rows, 3))
    cells: dict[str, Any] = {}
    described: dict[str, dict[str, Any]] = {}
    for number in range(columns - 1):
        score = traits @ weights[number] / 2 + rng.normal(size=rows)
        name, kind = f"c{number}", number % 5
        if kind == 0:
            cells[name] = np.clip(np.floor(score * 2 + 4), 0, 7).astype(int).astype(str)
            described[name] = {"kind": "categorical", "categories": [str(label) for label in range(8)]}
        elif kind == 1:
            cells[name], described[name] = np.where(score > 0.5, "yes", "no"), YES_NO
        elif kind == 2:
            cells[name] = np.round(np.clip(score * 10, -100, 100), 2).astype(str)
            described[name] = {"kind": "continuous", "min": -100, "max": 100, "decimals": 2}
        elif kind == 3:
            cells[name] = np.clip(np.floor(np.exp(score * 1.5) * 10), 0, 5_000).astype(int).astype(str)
            described[name] = {"kind": "integer", "min": 0, "max": 5_000}
        else:
            days = np.clip(np.floor((score + 4) * 300), 0, 2_400).astype("timedelta64[D]")
            cells[name] = (np.datetime64("2018-01-01") + days).astype(str)
            described[name] = {"kind": "datetime", "min": "2018-01-01", "max": "2024-12-31"}
    cells["target"] = np.where(traits @ weights[-1] / 2 + rng.normal(size=rows) > 0.3, "yes", "no")
    return _schema(described | {"target": YES_NO}, "target"), pd.DataFrame(cells)


def numbers(rows: int, seed: int) -> tuple[Schema, pd.DataFrame]:
    """`last` follows from `first` and `second` up to a hundredth of its variance."""
    rng = np.random.default_rng(seed)
    first, second = rng.gamma(3, 10, rows), rng.normal(50, 15, rows)
    last = 2 * first + second + rng.normal(0, 4, rows)
    table = pd.DataFrame({"first": first, "second": second, "last": last, "other": rng.normal(50, 20, rows)})
    table = table.clip(0, 400).round(1).astype(str)
    table["kind"] = rng.choice(["a", "b", "c"], rows)
    columns: dict[str, dict[str, Any]] = {
        name: {"kind": "continuous", "min": 0, "max": 400, "decimals": 1} for name in table.columns[:4]
    }
    return _schema(columns | {"kind": {"kind": "categorical", "categories": ["a", "b", "c"]}}, None), table


def labels(rows: int, seed: int) -> tuple[Schema, pd.DataFrame]:
    """Five hundred labels of which most are rare (Zipf), and a target that half of them tell."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, 501) ** 1.2
    code = rng.choice(500, rows, p=weights / weights.sum())
    table = pd.DataFrame({"code": [f"d{number}" for number in code], "sex": rng.choice(["f", "m"], rows)})
    table["target"] = np.where(rng.random(rows) < np.where(code % 2, 0.7, 0.3), "yes", "no")
    columns: dict[str, dict[str, Any]] = {
        "code": {"kind": "categorical", "categories": [f"d{number}" for number in range(500)]},
        "sex": {"kind": "categorical", "categories": ["f", "m"]},
        "target": YES_NO,
    }
    return _schema(columns, "target"), table


def _heap(rng: np.random.Generator, values: np.ndarray, favourite: float, reach: float) -> np.ndarray:
    """Most people round to tens, and what is near the favourite to it."""
    tens = np.where(np.abs(values - favourite) < reach, favourite, np.round(values / 10) * 10)
    return np.where(rng.random(len(values)) < 0.85, tens, np.round(values))


def _schema(columns: dict[str, dict[str, Any]], target: str | None) -> Schema:
    return parse_schema({"columns": columns} | ({"target": target} if target else {}))
