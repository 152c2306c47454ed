"""Tables as they are: `python -m benchmarks.tables [--seeds 2] [--only NAME …]`; the last line is one JSON object.

`marginals` with default settings, three parties of equal random parts, δ = 1e-5, one colluder, on generated tables that
are hard in one way each (benchmarks/stress_tables.py) and on Adult and credit default where they are present. Figures:

heaped_error       mean error of the shares of the ten largest heaps, three heaped columns, ε 1
tail_ratio         rows beyond the real 99.9 % point of two long-tailed amounts over real ones, the larger, ε 1
weekend_share      payments on days that have none (28.6 % of days), ε 1
small_auroc        1,000 rows of Adult, 15 columns, ε 1: mean of logistic regression and boosting
small_mst_auroc    the same by dpmm's and opendp's MST (the better one), in environments of their own
weak_wide_auroc    300 yes-no columns, 40,000 rows, ε 1, logistic regression (real about 0.95)
wide_ok            27, 60, 120 and 300 columns of all kinds × 50,000 rows run at ε 1; wide_seconds (CPU), wide_peak_mb
adult_*, credit_*  four: the four classifiers' mean AUROC; gb: boosting; tvd2, tvd3: two- and three-way distance
number_r2          R² of a number from the others, fitted on synthetic, tested on real rows, ε 3, over that of real rows
limit_tvd          credit default's limit, all multiples of 10,000: distance of its released distribution over the
                   finest cells to the real one, ε 1; payment_tvd: the same, mean of the six payments
rare_within_two    labels below 0.1 % whose share is within a factor of two, of five hundred labels, ε 1
large_seconds      CPU for statistics and 105 pairs of 100 million rows × 15 columns, DuckDB; large_peak_mb
calibration_seconds the slowest of ε 0.1, 1, 10 with 400 tables (CPU)
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import r2_score

from benchmarks import large, stress_tables
from benchmarks.marginals import EXAMPLES, Bench, Row, federate
from benchmarks.peers.roster import ROSTER, Peer
from benchmarks.peers.running import run
from fed_node.source import read_table_as_text
from fedsynth.documents import read_schema
from synth.encoding.records import Records
from synth.metrics.fidelity_joint import avd
from synth.metrics.tables import Table, table_of
from synth.plan import Plan
from synth.privacy.calibration import calibrate_count_variance
from synth.schema import Schema
from synth.statistics.histograms import Statistics, StatisticsInquiry
from synth.synthesizers.registry import build

DATA = Path(__file__).parents[2] / "shared" / "data"
MARGINALS = {"name": "marginals"}
PARTIES = 3
LIMIT_SECONDS = 1_500  # of processor time, for a peer
Figures = dict[str, float | bool | None]


def asked(bench: Bench, epsilon: float, seed: int) -> tuple[Plan, dict[str, Records], Statistics]:
    """The plan, the parties' rows, and what their histograms say."""
    order = np.random.default_rng(seed).permutation(len(bench.records))
    parts = [bench.records.take(part) for part in np.array_split(order, PARTIES)]
    plan = bench.plan(epsilon, [len(part) for part in parts], MARGINALS)
    data = {party.name: part for party, part in zip(plan.parties, parts, strict=True)}
    statistics = StatisticsInquiry(plan)
    federate(statistics, data, seed)
    return plan, data, statistics.result()


def drawn(bench: Bench, epsilon: float, seed: int) -> Records:
    """As many synthetic rows as real ones."""
    plan, data, statistics = asked(bench, epsilon, seed)
    model = build(plan)
    model.begin(statistics, seed)
    federate(model, data, seed)
    return model.sample(len(bench.records), seed)


def generated(table: tuple[Schema, pd.DataFrame], test: pd.DataFrame) -> Bench:
    return Bench(table[0], table[1], test, quick=True)


def heaped(seeds: int) -> Figures:
    schema, train = stress_tables.heaped(50_000, 0)
    bench = Bench(schema, train, train.head(100), quick=True)
    errors, ratios, weekends = [], [], []
    for seed in range(seeds):
        made, real = drawn(bench, 1.0, seed).columns, bench.records.columns
        for name in ("upper", "lower", "weight"):
            known = real[name][~np.isnan(real[name])]
            values, counts = np.unique(known, return_counts=True)
            top = values[np.argsort(-counts)[:10]]
            errors.append(np.mean([abs((real[name] == value).mean() - (made[name] == value).mean()) for value in top]))
        beyond = {name: np.quantile(real[name], 0.999) for name in ("pay", "balance")}
        ratios.append([(made[name] > limit).sum() / (real[name] > limit).sum() for name, limit in beyond.items()])
        weekends.append(((made["day"] / 86_400).astype(int) + 2) % 7 >= 5)
    return {
        "heaped_error": float(np.mean(errors)),
        "tail_ratio": float(np.mean(ratios, axis=0).max()),
        "weekend_share": float(np.mean(weekends)),
    }


def small(seeds: int) -> Figures:
    schema, train, test = adult_tables()
    scores = []
    for seed in range(max(3 * seeds, 3)):
        bench = Bench(schema, train.sample(1_000, random_state=seed), test, quick=True)
        scores.append(learned(bench.run(1.0, PARTIES, seed, MARGINALS)))
    return {"small_auroc": float(np.mean(scores))}


def small_by_mst(seeds: int) -> Figures:
    """The rows of `small`, by each package's MST, one run a sample."""
    schema, train, test = adult_tables()
    means = []
    for peer in (peer for peer in ROSTER if peer.name in ("dpmm MST", "opendp MST")):
        scores = []
        for seed in range(max(3 * seeds, 3)):
            bench = Bench(schema, rows := train.sample(1_000, random_state=seed), test, quick=True)
            scores.append(learned(bench.figures(made_by(peer, rows, bench), seed)))
        print(f"{peer.name}: {np.round(scores, 3)}", flush=True)
        means.append(np.mean(scores))
    return {"small_mst_auroc": float(max(means))}


def made_by(peer: Peer, rows: pd.DataFrame, bench: Bench) -> Table:
    """As many rows by another package at ε 1."""
    with tempfile.TemporaryDirectory() as folder:
        given, out = Path(folder) / "rows.csv", Path(folder) / "made.csv"
        rows.to_csv(given, index=False)
        if error := run(peer, 1.0, given, bench.schema, out, LIMIT_SECONDS).error:
            raise SystemExit(f"{peer.name}: {error}")
        return table_of(pd.read_csv(out, dtype="str", keep_default_na=False), bench.schema)


def learned(found: Row) -> float:
    """Of logistic regression and boosting, the mean AUROC."""
    return float(np.mean([found["lr"] or 0.0, found["gb"] or 0.0]))


def weak_wide(_seeds: int) -> Figures:
    bench = generated(stress_tables.weak(40_000, 1), stress_tables.weak(10_000, 2)[1])
    bench.classifiers = ("logistic_regression", "gradient_boosting")
    rows = table_of(bench.codec.decode(drawn(bench, 1.0, 0)), bench.schema)
    real = bench.figures(bench.train, 0)
    return {"weak_wide_auroc": bench.figures(rows, 0)["lr"], "weak_wide_real": real["lr"]}


def wide(_seeds: int) -> Figures:
    seconds = 0.0
    for columns in (27, 60, 120, 300):
        schema, train = stress_tables.mixed(50_000, 1, columns)
        bench = Bench(schema, train, train.head(100), quick=True)
        start = time.process_time()
        drawn(bench, 1.0, 0)
        seconds = time.process_time() - start
        print(f"{columns} columns: {seconds:.0f} CPU s, {peak_mb():.0f} MB so far", flush=True)
    return {"wide_ok": True, "wide_seconds": seconds, "wide_peak_mb": peak_mb()}


def adult(seeds: int) -> Figures:
    bench = Bench(*adult_tables(), quick=False)
    at_1, three_way = [], []
    for seed in range(seeds):
        rows = table_of(bench.codec.decode(drawn(bench, 1.0, seed)), bench.schema)
        at_1.append(bench.figures(rows, seed))
        three_way.append(avd(bench.train, rows, bench.schema, ways=3))
    at_10 = bench.mean(bench.run(10.0, PARTIES, seed, MARGINALS) for seed in range(seeds))
    mean = bench.mean(at_1)
    return {
        "adult_four_1": mean["four"],
        "adult_gb_1": mean["gb"],
        "adult_tvd2_1": mean["tvd2"],
        "adult_tvd3_1": float(np.mean(three_way)),
        "adult_gb_10": at_10["gb"],
    }


def credit_bench() -> Bench | None:
    path = DATA / "credit-default" / "credit-default.csv.gz"
    if not path.exists():
        return None
    rows = read_table_as_text(path)
    order, cut = np.random.default_rng(0).permutation(len(rows)), len(rows) * 4 // 5
    schema = read_schema(EXAMPLES / "credit-default.schema.yaml")
    return Bench(schema, rows.iloc[order[:cut]], rows.iloc[order[cut:]], quick=False)


def round_numbers(seeds: int) -> Figures:
    if (bench := credit_bench()) is None:
        return {"limit_tvd": None, "payment_tvd": None}
    found = []
    for seed in range(seeds):
        _, _, released = asked(bench, 1.0, seed)
        cells, counts = released.finest
        shares, real = cells.probabilities(counts, released.variance**0.5), cells.split(cells.count(bench.records))
        far = {name: np.abs(shares[name] - real[name] / len(bench.records)).sum() / 2 for name in cells.scales}
        found.append([far["LIMIT_BAL"], np.mean([far[f"PAY_AMT{month}"] for month in range(1, 7)])])
    limit, payments = np.mean(found, axis=0)
    return {"limit_tvd": float(limit), "payment_tvd": float(payments)}


def credit(seeds: int) -> Figures:
    if (bench := credit_bench()) is None:
        return {"credit_four_1": None}
    runs: list[Row] = [bench.run(1.0, PARTIES, seed, MARGINALS) for seed in range(seeds)]
    return {"credit_four_1": bench.mean(runs)["four"]}


def number_relation(seeds: int) -> Figures:
    schema, train = stress_tables.numbers(20_000, 1)
    bench = Bench(schema, train, train.head(100), quick=True)
    test = bench.codec.encode(stress_tables.numbers(5_000, 2)[1]).columns

    def explained(rows: dict[str, Any]) -> float:
        known = ("first", "second", "other")
        model = HistGradientBoostingRegressor(random_state=0)
        model.fit(np.column_stack([rows[name] for name in known]), rows["last"])
        return float(r2_score(test["last"], model.predict(np.column_stack([test[name] for name in known]))))

    made = np.mean([explained(drawn(bench, 3.0, seed).columns) for seed in range(seeds)])
    return {"number_r2": float(made), "number_r2_real": explained(bench.records.columns)}


def rare_labels(seeds: int) -> Figures:
    schema, train = stress_tables.labels(50_000, 1)
    bench = Bench(schema, train, train.head(100), quick=True)
    real = np.bincount(bench.records.columns["code"].astype(int), minlength=500) / len(bench.records)
    rare = (real > 0) & (real < 0.001)
    close, inflated = [], []
    for seed in range(seeds):
        made = np.bincount(drawn(bench, 1.0, seed).columns["code"].astype(int), minlength=500) / len(bench.records)
        close.append(((made[rare] <= 2 * real[rare]) & (made[rare] >= real[rare] / 2)).mean())
        inflated.append(made[rare].sum() / real[rare].sum())
    return {"rare_within_two": float(np.mean(close)), "rare_mass_ratio": float(np.mean(inflated))}


def calibration(_seeds: int) -> Figures:
    slowest = 0.0
    for epsilon in (0.1, 1.0, 10.0):
        start = time.process_time()
        calibrate_count_variance(epsilon, 1e-5, 400)
        slowest = max(slowest, time.process_time() - start)
    return {"calibration_seconds": slowest}


def adult_tables() -> tuple[Schema, pd.DataFrame, pd.DataFrame]:
    train, test = (read_table_as_text(EXAMPLES / "data" / f"adult-{part}.csv.gz") for part in ("train", "test"))
    return read_schema(EXAMPLES / "adult.schema.yaml"), train, test


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def large_table(_seeds: int) -> Figures:
    """Made by benchmarks/large.py, in a process of its own."""
    return {name: value for name, value in large.figures().items() if name != "large_tables"}


PARTS: dict[str, Callable[[int], Figures]] = {
    "calibration": calibration,
    "heaped": heaped,
    "round_numbers": round_numbers,
    "small": small,
    "small_by_mst": small_by_mst,
    "weak_wide": weak_wide,
    "wide": wide,
    "number_relation": number_relation,
    "rare_labels": rare_labels,
    "adult": adult,
    "credit": credit,
    "large": large_table,
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=int, default=2)
    options.add_argument("--only", nargs="+", choices=PARTS, help="leave the others out")
    chosen = options.parse_args()
    found: Figures = {}
    for name in chosen.only or PARTS:
        start = time.process_time()
        figures = PARTS[name](chosen.seeds)
        found |= figures
        print(f"{name}: {figures} ({time.process_time() - start:.0f} CPU s)", flush=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
