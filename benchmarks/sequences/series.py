"""One long series a party, the unit is a step: a predictor of the next step, beside what needs no data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.sequences.running import records_of, synthesized
from synth.metrics.sequence_prediction import data_free_walks, persistence_mae, predictive_mae
from synth.metrics.sequences import sequence_mmd
from synth.metrics.tables import FloatArray
from synth.plan import Plan, parse_plan

STEPS, BLOCK, EVERY = 24, 120, 5  # of a sequence, of a block, and which block is for testing
DRAWN = 2000
STATISTICS_SHARE = 0.3
ENERGY = {  # declared: what instruments and weather can give, not what was seen
    "Appliances": (0, 1200), "lights": (0, 80), "Windspeed": (0, 15), "Visibility": (0, 70), "rv1": (0, 50),
    "Press_mm_hg": (725, 775), "T_out": (-6, 28), "Tdewpoint": (-8, 16), "T6": (-8, 30), "RH_6": (0, 100),
    "RH_5": (28, 98), "RH_out": (22, 100),
}  # fmt: skip
ROOM, HUMID = (14, 30), (18, 64)  # a room's temperature and relative humidity
STOCK = {**dict.fromkeys(["Open", "High", "Low", "Close", "Adj_Close"], (0, 1400)), "Volume": (0, 100_000_000)}


class Series:
    """One data set: its attributes with declared bounds, its training blocks, and windows of its test blocks."""

    def __init__(self, name: str, folder: Path) -> None:
        table = pd.read_csv(folder / name / f"{name}.csv.gz").select_dtypes("number")
        table = table.drop(columns="rv2", errors="ignore")  # a second copy of rv1
        self.names = list(table.columns)
        self.bounds = {each: _bounds(name, each) for each in self.names}
        low, high = np.array([self.bounds[each] for each in self.names], dtype=np.float64).T
        self.low, self.width = low, high - low
        values = np.clip((table.to_numpy(dtype=np.float64) - low) / self.width, 0, 1)
        place = np.arange(len(table))
        block, inside = place // (BLOCK + STEPS), place % (BLOCK + STEPS) < BLOCK
        is_test = block % EVERY == EVERY - 1
        self.train = table[inside & ~is_test].assign(block=block[inside & ~is_test]).reset_index(drop=True)
        self.windows = {
            "train": _windows(values, block, inside & ~is_test, 3),
            "test": _windows(values, block, inside & is_test, 3),
        }

    def plan(self, epsilon: float) -> Plan:
        columns: dict[str, Any] = {"block": {"kind": "identifier"}}
        for name, (low, high) in self.bounds.items():
            columns[name] = {"kind": "continuous", "min": low, "max": high, "decimals": 0 if high > 10**6 else 3}
        return parse_plan(
            {
                "name": "series",
                "parties": [{"name": "house", "rows": len(self.train) // 100 * 100}],
                "schema": {"columns": columns, "sequence": {"entity": "block", "length": STEPS, "unit": "step"}},
                "privacy": {
                    "epsilon": epsilon, "delta": 1e-5, "statistics_share": STATISTICS_SHARE, "noise": "local",
                },
                "secure_sum": {"statistics": "plain", "updates": "plain", "colluders": 0},
            }
        )  # fmt: skip

    def figures(self, epsilon: float, seed: int) -> dict[str, float]:
        plan = self.plan(epsilon)
        rows = synthesized(plan, {"house": records_of(self.train, plan, seed)}, seed, DRAWN)
        values = np.stack([rows.columns[name].reshape(-1, STEPS) for name in self.names], axis=2)
        made = (values - self.low) / self.width
        test = self.windows["test"]
        return {"mae": predictive_mae(made, test, seed=seed), "mmd": sequence_mmd(test, made, seed=seed)}

    def controls(self, seed: int) -> dict[str, float]:
        train, test = self.windows["train"], self.windows["test"]
        return {
            "real": predictive_mae(train, test, seed=seed),
            "persistence": persistence_mae(test),
            "data_free": predictive_mae(data_free_walks(train, seed=seed), test, seed=seed),
            "mmd_real": sequence_mmd(test, train, seed=seed),
        }


def _bounds(data: str, name: str) -> tuple[float, float]:
    known = STOCK if data == "stock" else ENERGY
    return known.get(name, ROOM if name.startswith("T") else HUMID)


def _windows(values: FloatArray, block: Any, chosen: Any, stride: int) -> FloatArray:
    found = []
    for number in np.unique(block[chosen]):
        places = np.flatnonzero(chosen & (block == number))
        found += [values[places[start : start + STEPS]] for start in range(0, len(places) - STEPS + 1, stride)]
    return np.array(found)
