"""Is the forecast of noise true? `python -m benchmarks.forecast`; the last line is one JSON object.

Adult's training rows (the first so many of a shuffle, some of the columns) and generated tables of all kinds, three
parties, δ = 1e-5, one seed each: what `synth.forecast` says of the pairs beforehand, beside the two-way distance that a
run then has. They are not the same thing: a model averages noise away, and misses what pairs do not show. So the
figures are Spearman's rank correlation over all cases, and the share of cases in which one is within three times the
other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from benchmarks import stress_tables
from benchmarks.marginals import Bench
from benchmarks.tables import MARGINALS, PARTIES, adult_tables, drawn
from synth.forecast import forecast
from synth.metrics.fidelity import tvd_two_way
from synth.metrics.tables import table_of
from synth.schema import Schema

Case = tuple[str, Schema, pd.DataFrame, float]


def cases() -> Iterator[Case]:
    schema, train, _ = adult_tables()
    shuffled = train.sample(frac=1, random_state=0)
    for rows, epsilon in ((178, 1.0), (800, 1.0), (3_000, 0.3), (3_000, 1.0), (10_000, 1.0), (10_000, 10.0)):
        yield f"adult, {rows} rows", schema, shuffled.head(rows), epsilon
    for rows, columns, epsilon in (
        (800, 40, 1.0),
        (800, 8, 1.0),
        (5_000, 20, 1.0),
        (5_000, 20, 10.0),
        (20_000, 40, 1.0),
    ):
        mixed = stress_tables.mixed(rows, 1, columns)
        yield f"generated, {rows} rows × {columns}", *mixed, epsilon


def measured(bench: Bench, epsilon: float) -> float:
    rows = table_of(bench.codec.decode(drawn(bench, epsilon, 0)), bench.schema)
    return tvd_two_way(bench.train, rows, bench.schema) or 0.0


def main() -> None:
    said, found = [], []
    print(f"{'':32} {'ε':>5} {'foretold':>9} {'measured':>9}  verdict")
    for name, schema, table, epsilon in cases():
        bench = Bench(schema, table, table.head(100), quick=True)
        sizes = [len(part) for part in np.array_split(np.arange(len(table)), PARTIES)]
        told = forecast(bench.plan(epsilon, sizes, MARGINALS))
        assert told is not None
        distance = measured(bench, epsilon)
        said.append(told.typical)
        found.append(distance)
        print(f"{name:32} {epsilon:5g} {told.typical:9.3f} {distance:9.3f}  {told.verdict}", flush=True)
    rank = float(spearmanr(said, found).statistic)
    ratio = np.array(said) / np.array(found)
    within = float(((ratio <= 3) & (ratio >= 1 / 3)).mean())
    print(json.dumps({"cases": len(said), "rank_correlation": round(rank, 3), "within_three": within}))


if __name__ == "__main__":
    main()
