"""Panels: many entities, few steps, the unit is an entity."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.sequences.running import records_of, synthesized
from synth.encoding.records import Codec, Records
from synth.metrics.sequence_dynamics import change_ratio, lag_correlation
from synth.metrics.sequence_prediction import data_free_walks, persistence_mae, predictive_mae
from synth.metrics.sequences import autocorrelation_distance, sequence_mmd
from synth.metrics.tables import FloatArray
from synth.plan import Plan, parse_plan
from synth.schema import Schema

PARTIES = ("north", "south", "west")
TEST_CLIENTS, MONTHS = 6000, 6
STATIC = ["LIMIT_BAL", "SEX", "EDUCATION", "MARRIAGE", "AGE", "default"]
STEPPED = {
    "status": ["PAY_6", "PAY_5", "PAY_4", "PAY_3", "PAY_2", "PAY_0"],
    "bill": [f"BILL_AMT{n}" for n in range(6, 0, -1)],
    "paid": [f"PAY_AMT{n}" for n in range(6, 0, -1)],
}
CREDIT: dict[str, Any] = {
    "columns": {
        "ID": {"kind": "identifier"},
        "month": {"kind": "integer", "min": 1, "max": 6},
        "LIMIT_BAL": {"kind": "integer", "min": 0, "max": 1_000_000},
        "SEX": {"kind": "categorical", "categories": ["1", "2"]},
        "EDUCATION": {"kind": "categorical", "categories": list("0123456")},
        "MARRIAGE": {"kind": "categorical", "categories": list("0123")},
        "AGE": {"kind": "integer", "min": 18, "max": 100},
        "default": {"kind": "categorical", "categories": ["0", "1"]},
        "status": {"kind": "categorical", "categories": [str(code) for code in range(-2, 10)]},
        "bill": {"kind": "integer", "min": -500_000, "max": 2_000_000},
        "paid": {"kind": "integer", "min": 0, "max": 2_000_000},
    },
    "target": "default",
    "sequence": {
        "entity": "ID",
        "time": "month",
        "length": MONTHS,
        "shortest": MONTHS,
        "static": STATIC,
        "encode": {"bill": "increments"},
    },
}
SIMULATED: dict[str, Any] = {
    "columns": {
        "who": {"kind": "identifier"},
        "hour": {"kind": "integer", "min": 1, "max": 24},
        "load": {"kind": "continuous", "min": -10, "max": 10, "decimals": 2},
    },
    "sequence": {"entity": "who", "time": "hour", "length": 24, "shortest": 24, "encode": {"load": "deviations"}},
}


def credit_clients(folder: Path, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and test clients, one row a month, oldest first."""
    wide = pd.read_csv(folder / "credit-default" / "credit-default.csv.gz")
    wide = wide.rename(columns={"default.payment.next.month": "default"})
    months = [
        wide[["ID", *STATIC]].assign(month=month + 1, **{name: wide[of[month]] for name, of in STEPPED.items()})
        for month in range(MONTHS)
    ]
    order = np.random.default_rng(seed).permutation(wide["ID"])
    table = pd.concat(months).sort_values(["ID", "month"], ignore_index=True)
    is_test = table["ID"].isin(order[:TEST_CLIENTS])
    return table[~is_test].reset_index(drop=True), table[is_test].reset_index(drop=True)


def simulated_entities(count: int, seed: int) -> pd.DataFrame:
    """An entity's mean (89.3 % of the variance) and deviations that are forgotten by a third from step to step."""
    rng = np.random.default_rng(seed)
    mean, kept, within = rng.normal(0, 2, (count, 1)), 0.67, 2 * np.sqrt(0.107 / 0.893)
    moved = np.empty((count, 24))
    moved[:, 0] = rng.normal(0, within, count)
    for step in range(1, 24):
        moved[:, step] = kept * moved[:, step - 1] + rng.normal(0, within * np.sqrt(1 - kept**2), count)
    return pd.DataFrame(
        {
            "who": np.repeat(np.arange(count), 24),
            "hour": np.tile(np.arange(1, 25), count),
            "load": np.clip(mean + moved, -10, 10).ravel().round(2),
        }
    )


def panel_plan(
    schema: dict[str, Any], entities: int, epsilon: float, synthesizer: dict[str, Any] | None = None
) -> Plan:
    parties = [{"name": name, "rows": entities // len(PARTIES)} for name in PARTIES]
    privacy = {"epsilon": epsilon, "delta": 1e-5}
    content = {"name": "panel", "parties": parties, "schema": schema, "privacy": privacy}
    return parse_plan(content | ({"synthesizer": synthesizer} if synthesizer else {}))


def credit_figures(
    folder: Path, epsilon: float, seed: int, synthesizer: dict[str, Any] | None = None
) -> dict[str, float]:
    train, test = credit_clients(folder, seed)
    plan = panel_plan(CREDIT, train["ID"].nunique(), epsilon, synthesizer)
    made = _made(plan, train, seed)
    real, held = (Codec(plan.table).fit(table[list(plan.table.released)].astype(str))[0] for table in (train, test))
    return figures(real, made, held, plan.table)


def figures(real: Records, made: Records, held: Records, schema: Schema) -> dict[str, float]:
    """Of `made` against the real rows, and its use on held-out ones; all hold six rows a client."""
    ours, theirs = (_sequences(rows, schema, list(STEPPED)) for rows in (real, made))
    bill = list(STEPPED).index("bill")
    logistic, boosted = _auroc(made, held)
    return {
        "mae": predictive_mae(theirs, _sequences(held, schema, list(STEPPED)), seed=0),
        "lr": logistic,
        "gb": boosted,
        "lag1": float(lag_correlation(theirs, 1)[bill]),
        "lag5": float(lag_correlation(theirs, 5)[bill]),
        "change_ratio": float(change_ratio(ours, theirs)[bill]),
        "mmd": sequence_mmd(ours, theirs),
        "acd": autocorrelation_distance(ours, theirs),
    }


def credit_reference(folder: Path, seed: int) -> dict[str, float]:
    """The same figures of the real rows themselves."""
    train, test = credit_clients(folder, seed)
    plan = panel_plan(CREDIT, train["ID"].nunique(), 1.0)
    real, held = (Codec(plan.table).fit(table[list(plan.table.released)].astype(str))[0] for table in (train, test))
    unseen = _sequences(held, plan.table, list(STEPPED))
    controls = {"persistence": persistence_mae(unseen), "data_free": predictive_mae(data_free_walks(unseen), unseen)}
    return figures(real, real, held, plan.table) | controls


def simulated_figures(count: int, epsilon: float, seed: int) -> dict[str, float]:
    table = simulated_entities(count, seed)
    plan = panel_plan(SIMULATED, count, epsilon)
    real = Codec(plan.table).fit(table[["load"]].astype(str))[0]
    ours, theirs = (_sequences(rows, plan.table, ["load"], 24) for rows in (real, _made(plan, table, seed)))
    return {
        "lag1": float(lag_correlation(theirs, 1)[0]),
        "lag12": float(lag_correlation(theirs, 12)[0]),
        "mmd": sequence_mmd(ours, theirs),
        "real_lag1": float(lag_correlation(ours, 1)[0]),
        "real_lag12": float(lag_correlation(ours, 12)[0]),
    }


def _made(plan: Plan, table: pd.DataFrame, seed: int) -> Records:
    records = records_of(table, plan, seed)
    parts = {name: records.take(np.arange(n, len(records), len(PARTIES))) for n, name in enumerate(PARTIES)}
    return synthesized(plan, parts, seed, plan.rows)


def _sequences(rows: Records, schema: Schema, names: list[str], steps: int = MONTHS) -> FloatArray:
    """(sequences, steps, attributes) in units of the declared ranges."""
    parts = []
    for name in names:
        column = schema.columns[name]
        low, high = getattr(column, "min", 0), getattr(column, "max", len(getattr(column, "labels", [])) - 1)
        parts.append((rows.columns[name].astype(np.float64).reshape(-1, steps) - low) / (high - low))
    return np.stack(parts, axis=2)


def _auroc(trained_on: Records, held: Records) -> tuple[float, float]:
    (inputs, target), (unseen, truth) = _features(trained_on), _features(held)
    logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)).fit(inputs, target)
    boosted = HistGradientBoostingClassifier(random_state=0).fit(inputs, target)
    scores = [model.predict_proba(unseen)[:, 1] for model in (logistic, boosted)]
    return float(roc_auc_score(truth, scores[0])), float(roc_auc_score(truth, scores[1]))


def _features(rows: Records) -> tuple[FloatArray, Any]:
    """A client's static columns and all steps of the others; codes as numbers."""
    static = [rows.columns[name][::MONTHS].astype(np.float64) for name in STATIC[:-1]]
    stepped = [rows.columns[name].astype(np.float64).reshape(-1, MONTHS) for name in STEPPED]
    return np.column_stack([*static, *stepped]), rows.columns["default"][::MONTHS]
