"""Every network on Adult: `python -m benchmarks.neural [--quick] [--seeds 3] [--only NAME …] [--colluders 1]`.

Three equal parties, δ = 1e-5, rigorous, noise shared by all of them: a step is a sum of gradients. With one colluder,
the plan's default, an opened sum holds 3/2 of the noise variance that is charged; with `--colluders 0` just all of it,
which is training on all rows together. The statistics and every ask go through the interface and the sums are added in
the open (an exact secure sum opens the same integers). Families come from the registry: whatever answers with updates
or sums of gradients is here. Adult's training rows train, its test rows judge, once; settings were tuned on two thirds
of the training rows against the other third.

four     mean AUROC of the four classifiers that Leitner (2023) names      gb     of gradient boosting
tvd2, 3  two- and three-way total variation against the training rows      epsilon  spent, everything composed

`parity` is a table whose signal no pair of columns shows: AUROC of gradient boosting, `autoregressive` and `marginals`.
`sigma_over_gaussian`: noise of a shared step over that of a Gaussian one at equal (ε, δ), lattice included.
`simulated_round_seconds`: a round of a tiny network in one process: consent, ledger, masks, no wire.
`round_overhead_seconds`: the same on a cluster, if `--cluster` names the record of `make bench-cluster`; else null.

It takes hours. Every finished run is kept in `runs/bench-neural` and not repeated, and all families' first seeds come
before anybody's second: so it can be cut at any time and goes on when started again. Kept runs know their settings but
not the code: `make clean` forgets them.
The last line is one JSON object keyed family/ε.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
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
from synth.plan import Plan, parse_plan, parse_schema
from synth.privacy.accounting import compose
from synth.privacy.calibration import calibrate_noise_multiplier
from synth.privacy.dpsgd import LATTICE, lattice_sensitivity
from synth.schema import Schema
from synth.statistics.mixture_rounds import statistics_inquiry
from synth.strict import digest_of
from synth.synthesizers.registry import FAMILIES, build, settings_of

PARTIES = 3
KEPT = Path("runs") / "bench-neural"
PRETRAINED = {"autoregressive pretrained": {"name": "autoregressive", "pretrain": {}}}
PARITY_FAMILIES = ("autoregressive", "marginals")
SEVERAL, WEIGHTS = 2, 20_000  # parties that share noise with one colluder among three; of a network, for its price
PARITY_ROWS, PARITY_COLUMNS, FLIPPED = 40_000, 8, 0.05


@dataclass(frozen=True, eq=False)
class Cell:
    """A line of the table: one family at one ε."""

    name: str
    settings: dict[str, Any]
    epsilon: float | None  # None: no privacy
    colluders: int

    @property
    def budget(self) -> str:
        return "none" if self.epsilon is None else f"{self.epsilon:g}"

    def kept_as(self, seed: int, quick: bool) -> Path:
        whole = settings_of(self.settings["name"]).model_validate(self.settings).model_dump(mode="json")
        mark = digest_of(whole)[:8]
        words = [self.name, self.budget, f"{self.colluders}colluders", mark, str(seed), *["quick"] * quick]
        return KEPT / ("-".join(words).replace(" ", "-") + ".json")


def networks() -> dict[str, dict[str, Any]]:
    """Every family that trains a network, with noise that is shared if it can be."""
    found = {}
    for name in FAMILIES:
        kind = settings_of(name)
        settings = {"name": name} | ({"exchange": "gradients"} if "exchange" in kind.model_fields else {})
        if kind.model_validate(settings).declared(private=True, faithful=False).answers != "counts":
            found[name] = settings
    return found


def cells(only: list[str] | None, epsilons: list[float], colluders: int) -> list[Cell]:
    found = {name: settings for name, settings in (networks() | PRETRAINED).items() if only is None or name in only}
    private = [Cell(name, settings, epsilon, colluders) for name, settings in found.items() for epsilon in epsilons]
    return private + [Cell(name, found[name], None, colluders) for name in ("vae",) if name in found]


def trained_rows(bench: Bench, cell: Cell, seed: int) -> tuple[Table, float | None]:
    """As many synthetic rows as real ones, and what they cost."""
    order = np.random.default_rng(seed).permutation(len(bench.records))
    parts = [bench.records.take(part) for part in np.array_split(order, PARTIES)]
    plan = plan_of(bench, cell, [len(part) for part in parts])
    data = {party.name: part for party, part in zip(plan.parties, parts, strict=True)}
    statistics, model = statistics_inquiry(plan), build(plan)
    federate(statistics, data, seed)
    model.begin(statistics.result(), seed)
    federate(model, data, seed)
    first = plan.parties[0].name
    charged = statistics.whole_cost(first) + model.whole_cost(first)
    spent = None if plan.privacy == "none" else compose(charged, DELTA).epsilon
    return table_of(bench.codec.decode(model.sample(len(bench.records), seed)), bench.schema), spent


def plan_of(bench: Bench, cell: Cell, parties: list[int]) -> Plan:
    plan = bench.plan(cell.epsilon or 1.0, parties, cell.settings)
    content = plan.model_dump(mode="json", by_alias=True, exclude_none=True)
    content["secure_sum"] |= {"colluders": cell.colluders}
    return parse_plan(content | ({"privacy": "none"} if cell.epsilon is None else {}))


def scored(bench: Bench, cell: Cell, seed: int) -> Row:
    start = time.process_time()
    rows, spent = trained_rows(bench, cell, seed)
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


def kept(place: Path, measure: Callable[[], Row]) -> Row:
    """What was measured before, or what is measured now and kept."""
    if not place.exists():
        found = measure()
        place.parent.mkdir(parents=True, exist_ok=True)
        unfinished = place.with_suffix(".part")
        unfinished.write_text(json.dumps(found))
        unfinished.rename(place)
    row: Row = json.loads(place.read_text())
    return row


def parity_table(rows: int, seed: int) -> tuple[Schema, pd.DataFrame]:
    """Fair coins; the last says whether the first three show an odd number of ones, but for a few rows."""
    coins = np.random.default_rng(seed).integers(0, 2, (rows, PARITY_COLUMNS))
    flips = np.random.default_rng([seed, 1]).random(rows) < FLIPPED
    names = [f"coin{number}" for number in range(PARITY_COLUMNS)]
    frame = pd.DataFrame(coins, columns=names).assign(odd=(coins[:, :3].sum(1) + flips) % 2)
    columns = {name: {"kind": "categorical", "categories": ["0", "1"]} for name in frame.columns}
    return parse_schema({"columns": columns, "target": "odd"}), frame.astype(str)


def parity(cell: Cell, seed: int) -> Row:
    """AUROC of gradient boosting on other rows of such a table."""
    schema, train = parity_table(PARITY_ROWS, 0)
    bench = Bench(schema, train, parity_table(PARITY_ROWS // 4, 1)[1], quick=True)
    return {"gb": bench.figures(trained_rows(bench, cell, seed)[0], seed)["gb"]}


def sigma_over_gaussian() -> float:
    """At a plan's budget for 300 steps, everything else left out."""
    shared, alone = (calibrate_noise_multiplier(3.0, DELTA, 0.05, 300, shares=shares) for shares in (SEVERAL, 1))
    return shared / alone * lattice_sensitivity(WEIGHTS) / LATTICE


def simulated_round_seconds(steps: int = 20) -> float:
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


def show(name: str, row: Row, seeds: int) -> None:
    wanted = [(key, 4, 8) for key in ("four", "gb", "tvd2", "tvd3")] + [("epsilon", 3, 8), ("seconds", 0, 7)]
    figures = (f"{'-' if row[key] is None else f'{row[key]:.{digits}f}':>{wide}}" for key, digits, wide in wanted)
    print(f"{name:34}" + "".join(figures) + f"{seeds:7}", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="one seed, gradient boosting only")
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--only", nargs="*", help="families, or parity, instead of all")
    options.add_argument("--epsilon", nargs="*", type=float, default=[1.0, 3.0])
    options.add_argument("--colluders", type=int, default=1, choices=(0, 1))
    options.add_argument("--cluster", type=Path, help="the last line of bench-cluster, in a file")
    chosen = options.parse_args()
    schema = read_schema(EXAMPLES / "adult.schema.yaml")
    train, test = (read_table_as_text(EXAMPLES / "data" / f"adult-{part}.csv.gz") for part in ("train", "test"))
    bench, seeds = Bench(schema, train, test, chosen.quick), 1 if chosen.quick else chosen.seeds
    table = cells(chosen.only, chosen.epsilon, chosen.colluders)
    everything = chosen.only is None
    families = PARITY_FAMILIES if everything or "parity" in chosen.only else ()
    coins = [Cell(name, {"name": name}, epsilon, chosen.colluders) for name in families for epsilon in chosen.epsilon]
    runs: dict[Cell, list[Row]] = {cell: [] for cell in (*table, *coins)}
    print(f"{'':34}{'four':>8}{'gb':>8}{'tvd2':>8}{'tvd3':>8}{'ε':>8}{'CPU s':>7}{'seed':>7}")
    for seed in range(seeds):
        for cell in table:
            place = cell.kept_as(seed, chosen.quick)
            runs[cell].append(kept(place, partial(scored, bench, cell, seed)))
            show(f"{cell.name}, ε {cell.budget}", runs[cell][-1], seed)
        for cell in coins:
            place = KEPT / f"parity-{cell.kept_as(seed, quick=False).name}"
            runs[cell].append(kept(place, partial(parity, cell, seed)))
    result: dict[str, Any] = {"seeds": seeds, "colluders": chosen.colluders, "parity": {}}
    for cell in table:
        result.setdefault(cell.name, {})[cell.budget] = bench.mean(runs[cell])
    for cell in coins:
        result["parity"].setdefault(cell.budget, {})[cell.name] = bench.mean(runs[cell])["gb"]
    result["sigma_over_gaussian"] = sigma_over_gaussian()
    result["simulated_round_seconds"] = simulated_round_seconds() if everything else None
    record = json.loads(chosen.cluster.read_text()) if chosen.cluster else {}
    result["round_overhead_seconds"] = record.get("round_overhead_seconds")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
