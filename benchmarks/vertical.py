"""Plans by columns: `python -m benchmarks.vertical [--seeds 3] [--quick]`.

Adult (published split), δ = 1e-5, rigorous, through the code that is deployed (`fedsynth simulate`: every party a
process, letters sealed, sums masked). Three parties of five columns each are the JSON's figures (one colluder is
tolerated); then seven columns and eight columns of the table with a notary, with the aggregator as dealer, and with
nobody to deal (minutes of encrypted products each). AUROC on the real test rows (logistic regression, gradient
boosting), mean over the seeds; accuracy of a multi-layer perceptron beside the one trained on real rows; two-way total
variation against the training rows; mean 4-way distance over 100 sets of columns across parties, over that of 100 sets
within one.

`shuffled_dependence` is the mean (bias-corrected) Cramér's V of the pairs across parties in a table whose parties had
their people shuffled, without privacy; beside it stands the figure of people in order. The cost of shares is that
of benchmarks/cross_tables.py.

The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from aggregator.watch import Silent
from fed_node.source import read_table_as_text
from fedsynth.documents import read_schema
from fedsynth.simulation import simulate as simulation
from fedsynth.simulation.columns import columns_apart
from fedsynth.simulation.simulate import Folders
from synth.metrics.fidelity import joint_shares, total_variation, tvd_two_way
from synth.metrics.tables import IntArray, Table, table_of
from synth.metrics.utility import Omission, utility
from synth.plan import Plan, parse_plan
from synth.schema import Schema

EXAMPLES = Path(__file__).parents[1] / "examples"
DELTA = 1e-5
FOUR, SETS = 4, 100
DEMANDED = {"1": (0.895, 0.903, 0.034), "3": (0.898, 0.908, 0.024)}


def layouts(names: list[str]) -> dict[str, tuple[dict[str, list[str]], dict[str, Any]]]:
    two = {"first": names[:7], "second": names[7:]}
    return {
        "three of 5 columns": ({"first": names[:5], "second": names[5:10], "third": names[10:]}, {}),
        "7 + 8 columns, notary": (two | {"notary": []}, {}),
        "7 + 8, aggregator deals": (two, {"linkage": {"dealer": "aggregator"}, "secure_sum": {"colluders": 0}}),
        "7 + 8, nobody deals": (two, {"linkage": {"dealer": "none"}}),
    }


def plan_for(schema: Schema, held: dict[str, list[str]], rows: int, privacy: Any, changes: dict[str, Any]) -> Plan:
    content = {
        "name": "benchmark",
        "schema": schema.model_dump(mode="json"),
        "parties": [{"name": name, "rows": rows, "columns": columns} for name, columns in held.items()],
        "partition": "columns",
        "privacy": privacy,
    }
    return parse_plan(content | changes | {"linkage": {"key": "person"} | changes.get("linkage", {})})


def synthetic(plan: Plan, parts: dict[str, pd.DataFrame], seed: int) -> pd.DataFrame:
    """A whole simulated run."""
    out = Path(tempfile.mkdtemp())
    try:
        folders = Folders(out)
        simulation.prepare_tables(plan, parts, folders, seed)
        return simulation.run(plan, folders, seed, Silent()).table
    finally:
        shutil.rmtree(out)


class Bench:
    def __init__(self) -> None:
        self.schema = read_schema(EXAMPLES / "adult-columns.schema.yaml")
        self.frame, test = (
            read_table_as_text(EXAMPLES / "data" / f"adult-{part}.csv.gz") for part in ("train", "test")
        )
        self.train, self.test = table_of(self.frame, self.schema), table_of(test, self.schema)
        self.names = list(self.schema.released)
        self.mlp = self.scores(self.train, 0)["mlp"]

    def scores(self, rows: Table, seed: int) -> dict[str, float]:
        found = utility(
            rows,
            self.test,
            self.schema,
            seed,
            ("logistic_regression", "gradient_boosting", "mlp"),
            fitted_on=self.train,
        )
        kept = {name: score for name, score in found.items() if not isinstance(score, Omission)}
        return {
            "lr": float(kept["logistic_regression"].auroc or 0),
            "gb": float(kept["gradient_boosting"].auroc or 0),
            "mlp": float(kept["mlp"].accuracy),
        }

    def run(self, layout: str, epsilon: float, seed: int) -> dict[str, float]:
        held, changes = layouts(self.names)[layout]
        plan = plan_for(self.schema, held, len(self.frame), {"epsilon": epsilon, "delta": DELTA}, changes)
        rows = table_of(synthetic(plan, columns_apart(self.frame, plan, seed), seed), self.schema)
        found = self.scores(rows, seed) | {"tvd2": float(tvd_two_way(self.train, rows, self.schema) or 0)}
        sets = four_way_sets(held, self.names, seed)
        return found | {
            f"avd4_{where}": float(np.mean([distance(self.train, rows, one) for one in chosen]))
            for where, chosen in sets.items()
        }

    def dependence(self, shuffled: bool) -> float:
        """Mean Cramér's V across parties in a table made without privacy."""
        held, changes = layouts(self.names)["three of 5 columns"]
        plan = plan_for(self.schema, held, len(self.frame), "none", changes)
        parts = columns_apart(self.frame, plan, 0)
        if shuffled:
            rng = np.random.default_rng(0)
            parts = {name: part.assign(person=rng.permutation(part["person"])) for name, part in parts.items()}
        rows = table_of(synthetic(plan, parts, 0), self.schema)
        owner = {name: party for party, names in held.items() for name in names}
        pairs = [(a, b) for a, b in combinations(self.names, 2) if owner[a] != owner[b]]
        return float(np.mean([cramers_v(rows.discretized(a), rows.discretized(b)) for a, b in pairs]))


def distance(real: Table, rows: Table, names: tuple[str, ...]) -> float:
    """Total variation over all combinations of some columns, as in the metric `avd`."""
    return total_variation(*joint_shares(joint(real, names), joint(rows, names)))


def joint(table: Table, names: tuple[str, ...]) -> IntArray:
    found = np.zeros(table.rows, dtype=np.int64)
    for name in names:
        found = found * table.cells(name) + table.discretized(name)
    return found


def four_way_sets(held: dict[str, list[str]], names: list[str], seed: int) -> dict[str, list[tuple[str, ...]]]:
    rng = np.random.default_rng(seed)
    sets: dict[str, list[tuple[str, ...]]] = {"within": [], "across": []}
    every = list(combinations(names, FOUR))
    for place in rng.permutation(len(every)):
        one = every[place]
        where = "within" if any(set(one) <= set(columns) for columns in held.values()) else "across"
        if len(sets[where]) < SETS:
            sets[where].append(one)
    return sets


def cramers_v(left: IntArray, right: IntArray) -> float:
    """Bias-corrected (Bergsma 2013)."""
    _, a = np.unique(left, return_inverse=True)
    _, b = np.unique(right, return_inverse=True)
    n, r, k = len(a), a.max() + 1, b.max() + 1
    table = np.bincount(a * k + b, minlength=r * k).reshape(r, k)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    phi = max(0.0, float(((table - expected) ** 2 / expected).sum()) / n - (k - 1) * (r - 1) / (n - 1))
    return float(np.sqrt(phi / max(min(r - (r - 1) ** 2 / (n - 1), k - (k - 1) ** 2 / (n - 1)) - 1, 1e-9)))


def in_process(rows: int, way: str = "--dealt") -> dict[str, float]:
    """The cost of shares (benchmarks/cross_tables.py) in a process of its own, whose memory is nobody else's."""
    command = [sys.executable, "-m", "benchmarks.cross_tables", way, str(rows)]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    measured: dict[str, float] = json.loads(found.splitlines()[-1])
    print(f"  {rows:>9,} rows   " + "   ".join(f"{name} {value:.1f}" for name, value in measured.items()), flush=True)
    return measured


def quality(seeds: int, quick: bool) -> dict[str, Any]:
    bench, result = Bench(), dict[str, Any]()
    print(f"{'':34}    lr     gb    mlp   tvd2   avd4 within/across   (mlp on real rows {bench.mlp:.4f})", flush=True)
    for layout in list(layouts(bench.names))[: 1 if quick else None]:
        for epsilon in (1.0, 3.0):
            runs = [bench.run(layout, epsilon, seed) for seed in range(seeds)]
            mean = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
            figures = f"{mean['lr']:.4f} {mean['gb']:.4f} {mean['mlp']:.4f} {mean['tvd2']:.4f}"
            print(
                f"ε {epsilon:g}  {layout:28} {figures} {mean['avd4_within']:.3f}/{mean['avd4_across']:.3f}", flush=True
            )
            if layout == "three of 5 columns":
                result[f"{epsilon:g}"] = {key: mean[key] for key in ("lr", "gb", "tvd2")}
                result[f"mlp_gap_{epsilon:g}"] = bench.mlp - mean["mlp"]
                result.setdefault("avd4_cross_over_within", mean["avd4_across"] / mean["avd4_within"])
                print(f"     demanded                     {DEMANDED[f'{epsilon:g}']}", flush=True)
    together, shuffled = bench.dependence(shuffled=False), bench.dependence(shuffled=True)
    print(f"Cramér's V across parties: people in order {together:.4f}, shuffled {shuffled:.4f}", flush=True)
    return result | {"shuffled_dependence": shuffled, "ordered_dependence": together}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="only the JSON's layout")
    given = parser.parse_args()
    print("Shares of all tables across two parties (CPU seconds, megabytes):", flush=True)
    small, large = in_process(32_561), in_process(1_000_000)
    alone = in_process(32_561, "--encrypted")
    result = quality(given.seeds, given.quick) | {
        "cross_seconds_32k": small["seconds"],
        "megabytes_per_link_32k": small["megabytes"],
        "cross_seconds_1m": large["seconds"],
        "megabytes_per_link_1m": large["megabytes"],
        "peak_mb_1m": large["peak_mb"],
        "encrypted_seconds_32k": alone["seconds"],
        "encrypted_megabytes_per_link_32k": alone["megabytes"],
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
