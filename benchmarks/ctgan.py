"""Quality of `ctgan` on Adult: `python -m benchmarks.ctgan [--quick] [--no-dp] [--seeds 3]`.

Three equal parties, ε = 3, δ = 1e-5, rigorous, through the simulation that `fedsynth simulate` runs: sums encrypted and
masked, every release charged. Each seed splits the rows anew, trains, draws as many rows as there are real ones and
scores them as Leitner (2023) does: mean AUROC of four classifiers on Adult's test rows, mean Jensen-Shannon distance of
discrete columns and mean Wasserstein distance of numeric ones against the training rows.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import pandas as pd

from aggregator.watch import Silent
from fed_node.source import read_table_as_text
from fedsynth.documents import read_plan_content
from fedsynth.simulation import simulate
from synth.metrics.fidelity import jsd, wd
from synth.metrics.utility import CTGAN_FOUR, Omission, mean_scores, utility
from synth.plan import Plan

EXAMPLES = Path(__file__).parents[1] / "examples"
TRAIN, TEST = EXAMPLES / "data" / "adult-train.csv.gz", EXAMPLES / "data" / "adult-test.csv.gz"
PUBLISHED = {  # Leitner 2023, tables 5.5, 5.7 and 5.8
    "thesis DP-Fed-CTGAN (ε not sound)": (0.7526, 0.3038, 0.0509),
    "thesis Fed-CTGAN (no DP)": (0.8486, 0.0540, 0.0140),
}


def plan_content(private: bool, quick: bool) -> dict[str, Any]:
    content = read_plan_content(EXAMPLES / ("adult-ctgan.yaml" if private else "adult-fed-ctgan.yaml"))
    if quick:
        content["synthesizer"] = content["synthesizer"] | {"rounds": 2, "steps_per_round": 3}
    return content


def run(content: dict[str, Any], seed: int) -> dict[str, Any]:
    """One federation and its scores."""
    with tempfile.TemporaryDirectory() as folder:
        folders = simulate.Folders(Path(folder))
        start = time.perf_counter()
        plan = simulate.prepare_partition(content, TRAIN, "iid", 3, folders, seed)
        release = simulate.run(plan, folders, seed, Silent())
        seconds = time.perf_counter() - start
    return scores(plan, release.table, seed) | {"epsilon": release.certificate.claim.epsilon, "seconds": seconds}


def scores(plan: Plan, synthetic: pd.DataFrame, seed: int) -> dict[str, Any]:
    train, test = read_table_as_text(TRAIN), read_table_as_text(TEST)
    by_classifier = utility(synthetic, test, plan.table, seed, CTGAN_FOUR, fitted_on=train)
    mean = mean_scores(by_classifier, CTGAN_FOUR)
    if isinstance(mean, Omission):
        raise SystemExit(f"no AUROC: {mean.reason}")
    return {"auroc": mean.auroc, "jsd": jsd(train, synthetic, plan.table), "wd": wd(train, synthetic, plan.table)}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="a few steps and one seed: does it run?")
    options.add_argument("--no-dp", action="store_true", help="Fed-CTGAN: no noise, no clipping")
    options.add_argument("--seeds", type=int, default=3)
    chosen = options.parse_args()
    content = plan_content(not chosen.no_dp, chosen.quick)
    runs = []
    print(f"{'':36}{'AUROC':>8}{'JSD':>8}{'WD':>8}{'ε':>8}{'s':>7}")
    for name, figures in PUBLISHED.items():
        print(f"{name:36}" + "".join(f"{figure:8.4f}" for figure in figures))
    for seed in range(1 if chosen.quick else chosen.seeds):
        runs.append(run(content, seed))
        print_row(f"ours, seed {seed}", runs[-1])
    mean: dict[str, Any] = {key: statistics.fmean(r[key] for r in runs) for key in ("auroc", "jsd", "wd", "seconds")}
    mean["epsilon"] = None if chosen.no_dp else max(r["epsilon"] for r in runs)
    print_row("ours, mean", mean)
    print(json.dumps({**{k: mean[k] for k in ("auroc", "jsd", "wd", "epsilon", "seconds")}, "seeds": runs}))


def print_row(name: str, row: dict[str, Any]) -> None:
    figures = "".join(f"{row[key]:8.4f}" for key in ("auroc", "jsd", "wd"))
    epsilon = "   none" if row["epsilon"] is None else f"{row['epsilon']:8.3f}"
    print(f"{name:36}{figures}{epsilon:>8}{row['seconds']:7.0f}", flush=True)


if __name__ == "__main__":
    main()
