"""Quality of `bayes`: `python -m benchmarks.bayes [--quick] [--seeds 3] [--only private|published]`.

Two parts, each the mean over seeds, three equal parties:
private     Adult, published split, ε = 3 and 1, δ = 1e-5, rigorous: the figures of `benchmarks.marginals`.
published   What the thesis measured without privacy (FedBN, tables 6.1 and 6.4, row 'iid 3'): Adult's training file
            without `fnlwgt` and `education`, `education-num` as a category, 80 : 20 anew for every seed. Hellinger
            distance (M-HD) and pairwise correlation difference (PCD) against the training part, and the "ROC AUC" of a
            random forest's hard predictions on the rest, trained on the synthetic rows. Our default search is measured
            beside the published one.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score

from benchmarks.marginals import EXAMPLES, FIGURES, Bench, federate, heading, show
from fed_node.source import read_table_as_text
from fedsynth.documents import read_schema
from synth.encoding.records import Codec, Records
from synth.metrics.fidelity_columns import hellinger
from synth.metrics.fidelity_pairs import associations, pcd
from synth.plan import Plan, parse_plan, parse_schema
from synth.schema import Schema
from synth.statistics.histograms import StatisticsInquiry
from synth.synthesizers.registry import build

PARTIES = 3
PUBLISHED = {"hd": 0.185, "pcd": 0.365, "rf": 0.761}
SEARCHES: dict[str, dict[str, Any]] = {
    "published (islands)": {"profile": "faithful", "synthesizer": {"name": "bayes", "preset": "published"}},
    "default (tables)": {"synthesizer": {"name": "bayes"}},
}
Figures = dict[str, float]


def private(seeds: int, quick: bool) -> dict[str, Any]:
    schema = read_schema(EXAMPLES / "adult.schema.yaml")
    train, test = (read_table_as_text(EXAMPLES / "data" / f"adult-{part}.csv.gz") for part in ("train", "test"))
    bench = Bench(schema, train, test, quick)
    found: dict[str, Any] = {}
    heading("adult, 3 parties")
    for epsilon in (3.0, 1.0):
        runs = []
        for seed in range(seeds):
            runs.append(bench.run(epsilon, PARTIES, seed, {"name": "bayes"}))
            show(f"  seed {seed}, ε {epsilon:g}", runs[-1])
        mean = bench.mean(runs)
        show(f"mean, ε {epsilon:g}", mean)
        found[f"{epsilon:g}"] = {key: mean[key] for key in (*FIGURES, "epsilon", "seconds")}
    return found


def thesis_table() -> tuple[Schema, pd.DataFrame]:
    """Adult as the thesis cleaned it."""
    content = read_schema(EXAMPLES / "adult.schema.yaml").model_dump(mode="json")
    columns = {name: one for name, one in content["columns"].items() if name not in ("fnlwgt", "education")}
    columns["education-num"] = {"kind": "categorical", "categories": [str(number) for number in range(1, 17)]}
    schema = parse_schema(content | {"columns": columns})
    return schema, read_table_as_text(EXAMPLES / "data" / "adult-train.csv.gz")[list(columns)]


def published(seeds: int, quick: bool) -> dict[str, Any]:
    schema, rows = thesis_table()
    print(f"{'adult, no privacy':24}{'hd':>8}{'pcd':>8}{'rf':>8}{'s':>8}")
    _line("thesis, iid 3", PUBLISHED)
    found: dict[str, Any] = {"thesis": PUBLISHED}
    for name, changes in SEARCHES.items():
        runs = [_once(schema, rows, changes, seed, quick) for seed in range(seeds)]
        found[name] = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
        _line(name, found[name])
    return found


def _once(schema: Schema, rows: pd.DataFrame, changes: dict[str, Any], seed: int, quick: bool) -> Figures:
    codec, order = Codec(schema), np.random.default_rng(seed).permutation(len(rows))
    cut = len(rows) * 4 // 5
    train, test = (codec.encode(rows.iloc[part]) for part in (order[:cut], order[cut:]))
    parts = [train.take(part) for part in np.array_split(np.arange(cut), PARTIES)]
    start = time.perf_counter()
    drawn = _drawn(_plan(schema, [len(part) for part in parts], changes, quick), parts, seed)
    seconds = time.perf_counter() - start
    real, made = codec.decode(train), codec.decode(drawn)
    return {
        "hd": hellinger(real, made, schema) or 0.0,
        "pcd": pcd(associations(real, schema), associations(made, schema)),
        "rf": _forest(schema, drawn, test, seed),
        "seconds": seconds,
    }


def _plan(schema: Schema, rows: list[int], changes: dict[str, Any], quick: bool) -> Plan:
    content: dict[str, Any] = {
        "name": "thesis",
        "schema": schema.model_dump(mode="json"),
        "parties": [{"name": f"party-{number}", "rows": count} for number, count in enumerate(rows, 1)],
        "privacy": "none",
    } | changes
    if quick:
        content["synthesizer"] = content["synthesizer"] | {"generations": 40}
    return parse_plan(content)


def _drawn(plan: Plan, parts: list[Records], seed: int) -> Records:
    data = {party.name: part for party, part in zip(plan.parties, parts, strict=True)}
    statistics, model = StatisticsInquiry(plan), build(plan)
    federate(statistics, data, seed)
    model.begin(statistics.result(), seed)
    federate(model, data, seed)
    return model.sample(sum(len(part) for part in parts), seed)


def _forest(schema: Schema, train: Records, test: Records, seed: int) -> float:
    """The thesis's figure: area under the curve of hard predictions, which is balanced accuracy."""
    target = str(schema.target)

    def features(rows: Records) -> npt.NDArray[np.float64]:
        return np.stack([values.astype(np.float64) for name, values in rows.columns.items() if name != target], axis=1)

    forest = RandomForestClassifier(random_state=seed).fit(features(train), train.columns[target])
    return float(roc_auc_score(test.columns[target], forest.predict(features(test))))


def _line(name: str, row: Figures) -> None:
    figures = "".join(f"{row[key]:8.4f}" for key in PUBLISHED)
    print(f"{name:24}{figures}" + (f"{row['seconds']:8.1f}" if "seconds" in row else ""), flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="one seed, short searches, two classifiers")
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--only", choices=("private", "published"), help="one part only")
    chosen = options.parse_args()
    seeds = 1 if chosen.quick else chosen.seeds
    result: dict[str, Any] = {}
    if chosen.only != "private":
        result["none"] = published(seeds, chosen.quick)
    if chosen.only != "published":
        result |= private(seeds, chosen.quick)
    result["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(result))


if __name__ == "__main__":
    main()
