"""Generators that only the aggregator has: `python -m benchmarks.central [--quick] [--seeds 3] [--only NAME …]
[--epsilon 1 3]`.

Adult (published split), δ = 1e-5, rigorous, one colluder, defaults of both families. `gswgan`: three equal parties of
rows, through the interface, sums added in the open. `vertigan`: three parties of five columns each, through the code
that is deployed (`fedsynth simulate`: letters sealed, sums masked). Adult's test rows judge: `four` is the mean AUROC
of k-NN, MLP, random forest and AdaBoost trained on as many synthetic rows as there are real ones, `gb` that of gradient
boosting, `tvd2` the two-way total variation against the training rows. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from benchmarks.marginals import DELTA, EXAMPLES, Bench, Row
from benchmarks.vertical import layouts, plan_for, synthetic
from fed_node.source import read_table_as_text
from fedsynth.documents import read_schema
from fedsynth.simulation.columns import columns_apart
from synth.metrics.tables import table_of
from synth.privacy.accounting import compose
from synth.programme import whole_cost

PARTIES = 3
FIGURES = ("four", "lr", "gb", "tvd2")


class Central:
    """Adult twice: as the parties by rows have it, and with a key for those by columns."""

    def __init__(self, quick: bool) -> None:
        self.frame, test = (
            read_table_as_text(EXAMPLES / "data" / f"adult-{part}.csv.gz") for part in ("train", "test")
        )
        self.bench = Bench(read_schema(EXAMPLES / "adult.schema.yaml"), self.frame, test, quick)
        self.by_columns = read_schema(EXAMPLES / "adult-columns.schema.yaml")

    def gswgan(self, epsilon: float, seed: int) -> Row:
        return self.bench.run(epsilon, PARTIES, seed, {"name": "gswgan"})

    def vertigan(self, epsilon: float, seed: int) -> Row:
        held, changes = layouts(list(self.by_columns.released))["three of 5 columns"]
        privacy, family = {"epsilon": epsilon, "delta": DELTA}, {"synthesizer": {"name": "vertigan"}}
        plan = plan_for(self.by_columns, held, len(self.frame), privacy, changes | family)
        start = time.perf_counter()
        rows = synthetic(plan, columns_apart(self.frame, plan, seed), seed)
        seconds = time.perf_counter() - start
        spent = compose(whole_cost(plan, plan.holders[0]), DELTA).epsilon
        return self.bench.figures(table_of(rows, self.bench.schema), seed) | {"epsilon": spent, "seconds": seconds}

    def run(self, family: str, epsilon: float, seed: int) -> Row:
        return self.gswgan(epsilon, seed) if family == "gswgan" else self.vertigan(epsilon, seed)


def show(name: str, row: Row) -> None:
    figures = (f"{'-' if row[key] is None else f'{row[key]:.4f}':>8}" for key in FIGURES)
    print(f"{name:20}" + "".join(figures) + f"{row['epsilon']:8.3f}{row['seconds']:7.0f}", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="one seed, two classifiers")
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--only", nargs="*", default=["gswgan", "vertigan"], help="of the two families")
    options.add_argument("--epsilon", nargs="*", type=float, default=[1.0, 3.0])
    chosen = options.parse_args()
    central, seeds = Central(chosen.quick), 1 if chosen.quick else chosen.seeds
    result: dict[str, Any] = {"seeds": seeds}
    print(f"{'':20}" + "".join(f"{figure:>8}" for figure in (*FIGURES, "ε")) + f"{'s':>7}", flush=True)
    for family in chosen.only:
        for epsilon in chosen.epsilon:
            mean = central.bench.mean([central.run(family, epsilon, seed) for seed in range(seeds)])
            show(f"{family}, ε {epsilon:g}", mean)
            result.setdefault(family, {})[f"{epsilon:g}"] = mean
    print(json.dumps(result))


if __name__ == "__main__":
    main()
