"""Quality of `marginals`: `python -m benchmarks.marginals [--quick] [--seeds 3] [--others FOLDER] [--ctgan]`.

Adult (published split) at ε = 3, 1 and 0.5, δ = 1e-5, rigorous, for 3, 10 and 50 parties of equal random parts: the
statistics and every ask of the synthesizer go through the interface, each party adds its own noise share with the
default of one colluder, and the sums are added in the open (an exact secure sum opens the same integers). As many rows
as there are real ones are drawn. AUROC on the real test rows: logistic regression, gradient boosting, and the mean of
the four classifiers that Leitner (2023) names; fidelity against the training rows.

`--others FOLDER` also reports credit default and obesity (FOLDER/NAME/NAME.csv.gz; four fifths train, one fifth test),
beside the same classifiers on the real rows and, with `--ctgan`, beside `ctgan` at the same ε.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fed_node.source import read_table_as_text
from fedsynth.documents import read_schema
from synth.encoding.records import Codec, Records
from synth.interface import Arrays, Ask, Inquiry, Sum
from synth.metrics.fidelity import jsd, tvd_one_way, tvd_two_way, wd
from synth.metrics.tables import Table, table_of
from synth.metrics.utility import CTGAN_FOUR, Omission, mean_scores, utility
from synth.plan import Plan, parse_plan
from synth.privacy.accounting import compose
from synth.privacy.noise import seeded_source
from synth.schema import Schema
from synth.statistics.histograms import StatisticsInquiry
from synth.synthesizers.registry import build

EXAMPLES = Path(__file__).parents[1] / "examples"
Row = dict[str, float | None]  # None: not measured
DELTA = 1e-5
FIGURES = ("lr", "gb", "four", "jsd", "wd", "tvd1", "tvd2")
SETTINGS = [(3.0, 10), (1.0, 10), (0.5, 10), (3.0, 3), (1.0, 3), (1.0, 50)]  # (ε, parties)
FLOORS = {  # of the issue: AUROC at least, distances at most
    3.0: (0.895, 0.907, 0.883, 0.010, 0.005, 0.020, 0.050),
    1.0: (0.892, 0.903, 0.878, 0.015, 0.005, 0.021, 0.055),
    0.5: (0.878, 0.887, 0.862, 0.025, 0.006, 0.024, 0.062),
}


class Bench:
    """One table: its schema, real rows for training and testing, and the figures of any rows against them."""

    def __init__(self, schema: Schema, train: pd.DataFrame, test: pd.DataFrame, quick: bool) -> None:
        self.schema, self.codec = schema, Codec(schema)
        self.records = self.codec.encode(train)
        self.train, self.test = table_of(train, schema), table_of(test, schema)
        self.classifiers = ("logistic_regression", "gradient_boosting", *(() if quick else CTGAN_FOUR))

    def plan(self, epsilon: float, parties: list[int], synthesizer: dict[str, Any]) -> Plan:
        content = {
            "name": "benchmark",
            "schema": self.schema.model_dump(mode="json"),
            "parties": [{"name": f"party-{number}", "rows": rows} for number, rows in enumerate(parties, 1)],
            "synthesizer": synthesizer,
            "privacy": {"epsilon": epsilon, "delta": DELTA},
        }
        return parse_plan(content)

    def run(self, epsilon: float, parties: int, seed: int, synthesizer: dict[str, Any]) -> Row:
        """Split, ask, fit, draw, score."""
        order = np.random.default_rng(seed).permutation(len(self.records))
        parts = [self.records.take(part) for part in np.array_split(order, parties)]
        plan = self.plan(epsilon, [len(part) for part in parts], synthesizer)
        data = {party.name: part for party, part in zip(plan.parties, parts, strict=True)}
        start = time.perf_counter()
        statistics, model = StatisticsInquiry(plan), build(plan)
        federate(statistics, data, seed)
        model.begin(statistics.result(), seed)
        federate(model, data, seed)
        rows = model.sample(len(self.records), seed)
        seconds = time.perf_counter() - start
        first = plan.parties[0].name
        spent = compose(statistics.whole_cost(first) + model.whole_cost(first), DELTA).epsilon
        return self.figures(table_of(self.codec.decode(rows), self.schema), seed) | {
            "epsilon": spent,
            "seconds": seconds,
        }

    def figures(self, rows: Table, seed: int) -> Row:
        scores = utility(rows, self.test, self.schema, seed, self.classifiers, fitted_on=self.train)
        found: Row = {
            "lr": auroc(scores["logistic_regression"]),
            "gb": auroc(scores["gradient_boosting"]),
            "four": auroc(mean_scores(scores, CTGAN_FOUR)) if set(CTGAN_FOUR) <= set(scores) else None,
        }
        for name, measure in (("jsd", jsd), ("wd", wd), ("tvd1", tvd_one_way), ("tvd2", tvd_two_way)):
            value = measure(self.train, rows, self.schema)
            found[name] = value
        return found

    def mean(self, runs: Iterable[Row]) -> Row:
        listed = list(runs)
        values = {key: [value for run in listed if (value := run[key]) is not None] for key in listed[0]}
        return {key: float(np.mean(found)) if found else None for key, found in values.items()}


def federate(inquiry: Inquiry, data: dict[str, Records], seed: int) -> None:
    """Every ask of an inquiry, its answers added up; noise from the seed, the party and the ask."""
    local: dict[str, Arrays] = {name: {} for name in data}
    number = 0
    while (ask := inquiry.ask(number)) is not None:
        answers = {}
        for name, rows in data.items():
            noise = seeded_source(seed, name, phase_of(ask), number)
            answers[name], local[name] = inquiry.answer(ask, name, rows, local[name], noise)
        inquiry.absorb(Sum.of(answers))
        number += 1


def phase_of(ask: Ask) -> str:
    return str(ask.options["phase"])


def auroc(score: Any) -> float:
    if isinstance(score, Omission):
        raise SystemExit(f"no AUROC: {score.reason}")
    return float(score.auroc)


def adult(seeds: int, quick: bool) -> dict[str, Any]:
    schema = read_schema(EXAMPLES / "adult.schema.yaml")
    train, test = (read_table_as_text(EXAMPLES / "data" / f"adult-{part}.csv.gz") for part in ("train", "test"))
    bench = Bench(schema, train, test, quick)
    result: dict[str, Any] = {"by_parties": {}}
    seconds = []
    heading("adult")
    show("real rows", bench.figures(bench.train, 0))
    for epsilon, parties in SETTINGS[:2] if quick else SETTINGS:
        runs = [bench.run(epsilon, parties, seed, {"name": "marginals"}) for seed in range(seeds)]
        mean = bench.mean(runs)
        show(f"ε {epsilon:g}, {parties} parties", mean)
        show(f"  demanded at ε {epsilon:g}", dict(zip(FIGURES, FLOORS[epsilon], strict=True)))
        seconds.append(mean["seconds"] or 0.0)
        named = {key: mean[key] for key in (*FIGURES, "epsilon")}
        result["by_parties"].setdefault(f"{epsilon:g}", {})[str(parties)] = named
        if parties == 10:
            result[f"{epsilon:g}"] = named
    return result | {"seconds": float(np.mean(seconds))}


def other_table(folder: Path, name: str, seeds: int, quick: bool, ctgan: bool) -> dict[str, Any]:
    schema = read_schema(EXAMPLES / f"{name}.schema.yaml")
    rows = read_table_as_text(folder / name / f"{name}.csv.gz")
    order = np.random.default_rng(0).permutation(len(rows))
    cut = len(rows) * 4 // 5
    bench = Bench(schema, rows.iloc[order[:cut]], rows.iloc[order[cut:]], quick)
    found = {"real": bench.figures(bench.train, 0)}
    heading(name)
    show("real rows", found["real"])
    for family in ("marginals", *(("ctgan",) if ctgan else ())):
        for epsilon in (3.0, 1.0):
            mean = bench.mean(bench.run(epsilon, 3, seed, {"name": family}) for seed in range(seeds))
            show(f"{family}, ε {epsilon:g}, 3 parties", mean)
            found[f"{family} {epsilon:g}"] = mean
    return found


def heading(name: str) -> None:
    print(f"{name:28}" + "".join(f"{figure:>8}" for figure in (*FIGURES, "ε", "s")))


def show(name: str, row: Row) -> None:
    figures = "".join(f"{'-' if row[key] is None else f'{row[key]:.4f}':>8}" for key in FIGURES)
    spent = f"{row['epsilon']:8.3f}{row['seconds']:8.1f}" if "seconds" in row else ""
    print(f"{name:28}{figures}{spent}", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="one seed, two settings, two classifiers")
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--others", type=Path, help="folder with credit-default and obesity")
    options.add_argument("--ctgan", action="store_true", help="run ctgan on those tables too")
    chosen = options.parse_args()
    seeds = 1 if chosen.quick else chosen.seeds
    result = adult(seeds, chosen.quick)
    for name in ("credit-default", "obesity") if chosen.others else ():
        result[name] = other_table(chosen.others, name, seeds, chosen.quick, chosen.ctgan)
    result["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(result))


if __name__ == "__main__":
    main()
