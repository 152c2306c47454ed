"""What an assessment tells, and what it costs: `python -m benchmarks.assessment [--seeds N] [--epsilon E] [--share S]`.

Adult (published split), `marginals`, three parties of equal random parts, δ = 1e-5, one colluder. Every figure is
printed beside its exact value on the same rows with the same bins and the same scorecard; the scorecard's AUROC also on
the test rows, which nobody trained on; and the AUROC of two classifiers with and without the assessment's share.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.marginals import EXAMPLES, Bench, auroc, federate
from fed_node.source import read_table_as_text
from fedsynth.documents import read_schema
from synth.assessment.inquiry import AssessmentInquiry
from synth.assessment.record import AssessmentRecord
from synth.assessment.scorecard import Scorecard
from synth.encoding.records import Records
from synth.metrics.tables import table_of
from synth.metrics.utility import utility
from synth.plan import Plan, parse_plan
from synth.statistics.histograms import StatisticsInquiry
from synth.synthesizers.registry import build

CLASSIFIERS = ("logistic_regression", "gradient_boosting")
PARTIES = 3


def run(bench: Bench, epsilon: float, share: float, seed: int, test: Records) -> dict[str, Any]:
    """One seed: with the assessment and its exact counterpart, and without."""
    order = np.random.default_rng(seed).permutation(len(bench.records))
    parts = [bench.records.take(part) for part in np.array_split(order, PARTIES)]
    without = bench.plan(epsilon, [len(part) for part in parts], {"name": "marginals"})
    content = without.model_dump(mode="json", by_alias=True) | {"assessment": {"share": share}}
    plan = parse_plan(content)
    data = {party.name: part for party, part in zip(plan.parties, parts, strict=True)}
    statistics, rows = table(plan, data, seed)
    noisy = AssessmentInquiry(plan)
    noisy.begin(statistics.result(), rows)
    federate(noisy, data, seed)
    exact = AssessmentInquiry(parse_plan(content | {"privacy": "none"}))
    exact.restore(noisy.question)
    federate(exact, data, seed)
    found = compared(noisy.result(rows, seed), exact.result(rows, seed))
    found["auroc"] |= {"unbucketed": area(noisy, bench.records), "on test rows": area(noisy, test)}
    return {
        "figures": found,
        "with": scores(bench, rows, seed),
        "without": scores(bench, table(without, data, seed)[1], seed),
    }


def table(plan: Plan, data: dict[str, Records], seed: int) -> tuple[StatisticsInquiry, Records]:
    statistics, model = StatisticsInquiry(plan), build(plan)
    federate(statistics, data, seed)
    model.begin(statistics.result(), seed)
    federate(model, data, seed)
    return statistics, model.sample(plan.rows, seed)


def compared(noisy: AssessmentRecord, exact: AssessmentRecord) -> dict[str, dict[str, float]]:
    return {
        name: {"exact": exact.figures[name].value, "assessed": figure.value, "low": figure.low, "high": figure.high}
        for name, figure in noisy.figures.items()
    }


def area(inquiry: AssessmentInquiry, rows: Records) -> float:
    """The scorecard's AUROC without buckets."""
    target = str(inquiry.plan.table.target)
    card = Scorecard(inquiry.question["weights"], inquiry.question["edges"])
    return float(roc_auc_score(rows.columns[target] == 1, card.probabilities(inquiry.cells, rows, target)[:, 1]))


def scores(bench: Bench, rows: Records, seed: int) -> dict[str, float]:
    made = table_of(bench.codec.decode(rows), bench.schema)
    found = utility(made, bench.test, bench.schema, seed, CLASSIFIERS, fitted_on=bench.train)
    return {name: auroc(score) for name, score in found.items()}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--epsilon", type=float, default=1.0)
    options.add_argument("--share", type=float, default=0.1)
    chosen = options.parse_args()
    schema = read_schema(EXAMPLES / "adult.schema.yaml")
    train, test = (read_table_as_text(EXAMPLES / "data" / f"adult-{part}.csv.gz") for part in ("train", "test"))
    bench = Bench(schema, train, test, quick=True)
    held_out = bench.codec.encode(test)
    for seed in range(chosen.seeds):
        found = run(bench, chosen.epsilon, chosen.share, seed, held_out)
        for name, figures in found["figures"].items():
            print(f"seed {seed}  {name:12}" + "".join(f"  {key} {value:.4f}" for key, value in figures.items()))
        print(json.dumps({"seed": seed} | found), flush=True)


if __name__ == "__main__":
    main()
