"""Every network on Adult: `python -m benchmarks.neural [--quick] [--seeds 3] [--only NAME …] [--epsilon 1 3]`.

Three equal parties, δ = 1e-5, rigorous, one colluder, noise shared wherever the family can (`exchange: gradients`); the
statistics and every ask go through the interface and the sums are added in the open (an exact secure sum opens the same
integers). Families come from the registry: whatever answers with updates or sums of gradients is here. Adult's training
rows train, its test rows judge, once; settings were tuned on two thirds of the training rows against the other third.

four     mean AUROC of the four classifiers that Leitner (2023) names      gb     of gradient boosting
tvd2, 3  two- and three-way total variation against the training rows      epsilon  spent, everything composed

`parity` is a table whose signal no pair of columns shows: AUROC of gradient boosting, `autoregressive` and `marginals`.
`sigma_over_gaussian`: noise of a shared step over that of a Gaussian one at equal (ε, δ), lattice included.
`round_overhead_seconds`: a round of a tiny network in one process, everything but the network: consent, ledger, masks.
The last line is one JSON object keyed family/ε.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from aggregator.watch import Silent
from benchmarks.marginals import DELTA, EXAMPLES, Bench, Row, auroc, federate
from fed_node.source import read_table_as_text
from fedsynth.documents import read_schema
from fedsynth.simulation import simulate
from synth.metrics.fidelity import tvd_two_way
from synth.metrics.fidelity_joint import avd
from synth.metrics.tables import Table, table_of
from synth.metrics.utility import CTGAN_FOUR, mean_scores, utility
from synth.plan import parse_schema
from synth.privacy.accounting import compose
from synth.privacy.calibration import calibrate_noise_multiplier
from synth.privacy.dpsgd import LATTICE, lattice_sensitivity
from synth.schema import Schema
from synth.statistics.mixture_rounds import statistics_inquiry
from synth.synthesizers.registry import FAMILIES, build, settings_of

PARTIES = 3
SEVERAL, WEIGHTS = 2, 20_000  # parties that share noise with one colluder among three; of a network, for its price
PARITY_ROWS, PARITY_COLUMNS, FLIPPED = 40_000, 8, 0.05


def networks() -> dict[str, dict[str, Any]]:
    """Every family that trains a network, with noise that is shared if it can be."""
    found = {}
    for name in FAMILIES:
        kind = settings_of(name)
        settings = {"name": name} | ({"exchange": "gradients"} if "exchange" in kind.model_fields else {})
        if kind.model_validate(settings).declared(private=True, faithful=False).answers != "counts":
            found[name] = settings
    return found


def trained_rows(bench: Bench, settings: dict[str, Any], epsilon: float, seed: int) -> tuple[Table, float]:
    """As many synthetic rows as real ones, and what they cost."""
    order = np.random.default_rng(seed).permutation(len(bench.records))
    parts = [bench.records.take(part) for part in np.array_split(order, PARTIES)]
    plan = bench.plan(epsilon, [len(part) for part in parts], settings)
    data = {party.name: part for party, part in zip(plan.parties, parts, strict=True)}
    statistics, model = statistics_inquiry(plan), build(plan)
    federate(statistics, data, seed)
    model.begin(statistics.result(), seed)
    federate(model, data, seed)
    first = plan.parties[0].name
    spent = compose(statistics.whole_cost(first) + model.whole_cost(first), DELTA).epsilon
    return table_of(bench.codec.decode(model.sample(len(bench.records), seed)), bench.schema), spent


def scored(bench: Bench, settings: dict[str, Any], epsilon: float, seed: int) -> Row:
    start = time.process_time()
    rows, spent = trained_rows(bench, settings, epsilon, seed)
    seconds = time.process_time() - start
    scores = utility(rows, bench.test, bench.schema, seed, bench.classifiers, fitted_on=bench.train)
    return {
        "four": auroc(mean_scores(scores, CTGAN_FOUR)) if set(CTGAN_FOUR) <= set(scores) else None,
        "gb": auroc(scores["gradient_boosting"]),
        "tvd2": tvd_two_way(bench.train, rows, bench.schema),
        "tvd3": avd(bench.train, rows, bench.schema, ways=3),
        "epsilon": spent,
        "seconds": seconds,
    }


def parity_table(rows: int, seed: int) -> tuple[Schema, pd.DataFrame]:
    """Fair coins; the last says whether the first three show an odd number of ones, but for a few rows."""
    coins = np.random.default_rng(seed).integers(0, 2, (rows, PARITY_COLUMNS))
    flips = np.random.default_rng([seed, 1]).random(rows) < FLIPPED
    names = [f"coin{number}" for number in range(PARITY_COLUMNS)]
    frame = pd.DataFrame(coins, columns=names).assign(odd=(coins[:, :3].sum(1) + flips) % 2)
    columns = {name: {"kind": "categorical", "categories": ["0", "1"]} for name in frame.columns}
    return parse_schema({"columns": columns, "target": "odd"}), frame.astype(str)


def parity(epsilon: float, seeds: int) -> dict[str, float]:
    schema, train = parity_table(PARITY_ROWS, 0)
    bench = Bench(schema, train, parity_table(PARITY_ROWS // 4, 1)[1], quick=True)
    found: dict[str, float] = {}
    for name in ("autoregressive", "marginals"):
        scores = []
        for seed in range(seeds):
            rows, _ = trained_rows(bench, {"name": name}, epsilon, seed)
            scores.append(bench.figures(rows, seed)["gb"] or 0.0)
        found[name] = float(np.mean(scores))
    return found


def sigma_over_gaussian() -> float:
    """At a plan's budget for 300 steps, everything else left out."""
    shared, alone = (calibrate_noise_multiplier(3.0, DELTA, 0.05, 300, shares=shares) for shares in (SEVERAL, 1))
    return shared / alone * lattice_sensitivity(WEIGHTS) / LATTICE


def round_overhead_seconds(steps: int = 20) -> float:
    """Of the simulation, which does all that a federation does but the network."""
    schema, rows = parity_table(300, 0)
    content = Bench(schema, rows, rows, quick=True).plan(3.0, [100] * PARTIES, {"name": "marginals"})
    plan = content.model_dump(mode="json", by_alias=True, exclude_none=True)
    plan["synthesizer"] = {"name": "autoregressive", "steps": steps, "width": 1}
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "rows.csv"
        rows.to_csv(table, index=False)
        folders = simulate.Folders(Path(folder) / "run")
        prepared = simulate.prepare_partition(plan, table, "iid", PARTIES, folders, 0)
        start = time.perf_counter()
        simulate.run(prepared, folders, 0, Silent())
        return (time.perf_counter() - start) / (steps + 1)


def show(name: str, row: Row) -> None:
    figures = (f"{'-' if row[key] is None else f'{row[key]:.4f}':>8}" for key in ("four", "gb", "tvd2", "tvd3"))
    print(f"{name:30}" + "".join(figures) + f"{row['epsilon']:8.3f}{row['seconds']:7.0f}", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="one seed, gradient boosting only")
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--only", nargs="*", help="families, instead of all")
    options.add_argument("--epsilon", nargs="*", type=float, default=[1.0, 3.0])
    chosen = options.parse_args()
    schema = read_schema(EXAMPLES / "adult.schema.yaml")
    train, test = (read_table_as_text(EXAMPLES / "data" / f"adult-{part}.csv.gz") for part in ("train", "test"))
    bench, seeds = Bench(schema, train, test, chosen.quick), 1 if chosen.quick else chosen.seeds
    result: dict[str, Any] = {"seeds": seeds}
    print(f"{'':30}{'four':>8}{'gb':>8}{'tvd2':>8}{'tvd3':>8}{'ε':>8}{'CPU s':>7}")
    for name, settings in networks().items():
        if chosen.only is not None and name not in chosen.only:
            continue
        for epsilon in chosen.epsilon:
            mean = bench.mean([scored(bench, settings, epsilon, seed) for seed in range(seeds)])
            show(f"{name}, ε {epsilon:g}", mean)
            result.setdefault(name, {})[f"{epsilon:g}"] = mean
    result["parity"] = {f"{epsilon:g}": parity(epsilon, seeds) for epsilon in chosen.epsilon}
    result["sigma_over_gaussian"] = sigma_over_gaussian()
    result["round_overhead_seconds"] = round_overhead_seconds()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
