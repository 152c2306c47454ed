"""What a full evaluation costs and whether it can tell good from bad: `python -m benchmarks.evaluate [--quick]`.

    adult           32,561 × 15 real rows, as many synthetic ones, 16,281 holdout rows: every figure
    large           500,000 × 55, mixed kinds, made here from a seed; 100,000 holdout rows: every figure
    real_vs_real    one half of Adult as the synthetic table of the other: every fidelity figure at its ceiling
    shuffled        every column of Adult shuffled on its own: pairs are gone, single columns are not
    copies          a table that copies 5 % of the training rows and is otherwise honest: which attacks notice
    gigabyte        two files of a gigabyte each, as `fedsynth evaluate` reads them: every figure that needs no holdout

Each part runs in a process of its own, whose peak memory is its own. `seconds` are of the clock and depend on what else
the machine does; `cpu_seconds` do not. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.wide_table import wide_schema, wide_table
from fed_node.source import read_table_as_text
from fedsynth.documents import read_schema
from synth.metrics.comparison import Comparison
from synth.metrics.evaluate import evaluate, fidelity_scores
from synth.metrics.evaluation import Evaluation
from synth.metrics.registry import METRICS
from synth.metrics.risks import Target, risks
from synth.metrics.tables import table_of

EXAMPLES = Path(__file__).parents[1] / "examples"
COPIED = 0.05
SPLITS = 6
"""Random splits of Adult from which the chance variation of a ceiling is estimated."""
SHUFFLED = ("tvd_one_way", "association_kept", "tvd_two_way", "avd_3_way", "detection_auroc", "omega")
GIGABYTE = 10**9
QUICK_SHARE = 20  # one row in so many


def adult(share: int) -> dict[str, Any]:
    train, test = adult_rows(share)
    order = np.random.default_rng(0).permutation(len(train))
    made = pd.concat([test, train.iloc[order[: max(0, len(train) - len(test))]]])  # as many as real; honest in part
    return figures(evaluate(train, made, schema(), test, progress=shown()))


def large(share: int) -> dict[str, Any]:
    rows = 500_000 // share
    described = wide_schema()
    real, made = wide_table(rows, seed=1), wide_table(rows, seed=2)
    return figures(evaluate(real, made, described, wide_table(rows // 5, seed=3), progress=shown()))


def real_vs_real(share: int) -> dict[str, Any]:
    """Ceilings vary by chance, each on its own scale: how much, several splits tell."""
    train, _ = adult_rows(share)
    splits = []
    for seed in range(SPLITS):
        order = np.random.default_rng(100 + seed).permutation(len(train))
        first, second = (table_of(train.iloc[half], schema()) for half in np.array_split(order, 2))
        splits.append(fidelity_scores(Comparison(first, second, seed), silent))
    below = {}
    for scores in zip(*splits, strict=True):
        value, ceilings = scores[0].value, [score.ceiling for score in scores if score.ceiling is not None]
        if not at_ceiling(scores[0].metric, value, ceilings):
            below[scores[0].metric] = {"value": value, "ceilings": ceilings}
    return {"at_ceiling": len(splits[0]) - len(below), "of": len(splits[0]), "below": below}


def shuffled(share: int) -> dict[str, Any]:
    train, _ = adult_rows(share)
    rng = np.random.default_rng(2)
    mixed = pd.DataFrame({name: rng.permutation(train[name].to_numpy()) for name in train.columns})
    scores = fidelity_scores(Comparison(table_of(train, schema()), table_of(mixed, schema()), seed=0), silent)
    return {s.metric: {"value": s.value, "ceiling": s.ceiling} for s in scores if s.metric in SHUFFLED}


def copies(share: int) -> dict[str, Any]:
    """The honest part are real rows that nobody trained on: half of the test rows, the other half is the holdout."""
    train, test = adult_rows(share)
    rng = np.random.default_rng(3)
    order = rng.permutation(len(test))
    honest, holdout = test.iloc[order[: len(test) // 2]], test.iloc[order[len(test) // 2 :]]
    copied = train.sample(int(COPIED * len(train)), random_state=3)

    def flagged(made: pd.DataFrame) -> list[str]:
        real, synthetic, unseen = (table_of(rows, schema()) for rows in (train, made, holdout))
        return [risk.metric for risk in risks(Target(real, synthetic, unseen, seed=0), silent)[0] if risk.flagged]

    return {"flagged": flagged(pd.concat([honest, copied])), "flagged_without_copies": flagged(honest)}


def gigabyte(share: int) -> dict[str, Any]:
    """The command itself, since reading is what a large file asks of it."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "schema.json").write_text(wide_schema().model_dump_json(by_alias=True, exclude_unset=True))
        rows = [
            _write_large(place / name, GIGABYTE // share, first) for name, first in (("real.csv", 0), ("made.csv", 1))
        ]
        command = [str(Path(sys.executable).parent / "fedsynth"), "evaluate", "real.csv", "made.csv"]
        began = time.monotonic()
        subprocess.run([*command, "--schema", "schema.json"], cwd=place, stdout=sys.stderr, check=True)
        return {"seconds": time.monotonic() - began, "rows": rows}


def _write_large(path: Path, size: int, first_seed: int) -> int:
    """Rows until the file is as large as asked; how many."""
    rows = 0
    with path.open("w") as file:
        while file.tell() < size:
            piece = wide_table(100_000, seed=first_seed + 2 * (rows // 100_000) + 10)
            piece.to_csv(file, index=False, header=rows == 0)
            rows += len(piece)
    return rows


PARTS: dict[str, Callable[[int], dict[str, Any]]] = {
    "adult": adult,
    "large": large,
    "real_vs_real": real_vs_real,
    "shuffled": shuffled,
    "copies": copies,
    "gigabyte": gigabyte,
}


def schema() -> Any:
    return read_schema(EXAMPLES / "adult.schema.yaml")


def adult_rows(share: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    train, test = (read_table_as_text(EXAMPLES / "data" / f"adult-{part}.csv.gz") for part in ("train", "test"))
    return train.iloc[::share], test.iloc[::share]


def figures(found: Evaluation) -> dict[str, Any]:
    return {"seconds": found.seconds, "flagged": found.flagged, "samplings": found.samplings}


def at_ceiling(name: str, value: float | None, ceilings: list[float]) -> bool:
    """Not worse than two halves of the real rows score, or by no more than three deviations of that score."""
    if value is None:
        return not ceilings
    metric = METRICS[name]
    sign = {"higher": -1.0, "lower": 1.0}.get(metric.better)
    worse = [abs(x - metric.ideal) if sign is None else sign * x for x in (value, *ceilings)]
    return bool(worse[0] <= np.mean(worse[1:]) + 3.0 * np.std(worse[1:], ddof=1))


def shown() -> Callable[[str, float], None]:
    """Seconds of the clock and of the processor for every step that takes more than one, on stderr."""
    clock, cpu, doing = time.monotonic(), time.process_time(), "reading"

    def step(what: str, share: float) -> None:
        nonlocal clock, cpu, doing
        took, worked = time.monotonic() - clock, time.process_time() - cpu
        if took > 1.0:
            print(f"{took:7.1f} s {worked:7.1f} cpu  {doing} ({share:.0%})", file=sys.stderr, flush=True)
        clock, cpu, doing = clock + took, cpu + worked, what

    return step


def silent(_: str) -> None:
    """Nobody watches the short parts."""


def in_a_process(part: str, share: int) -> dict[str, Any]:
    """One part with its peak memory and its processor seconds."""
    command = [sys.executable, "-m", "benchmarks.evaluate", "--part", part, "--share", str(share)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = process.stdout.read().splitlines()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{part} failed with exit code {process.returncode}; its last words are above")
    found: dict[str, Any] = json.loads(lines[-1])
    return found | {"cpu_seconds": used.ru_utime + used.ru_stime, "peak_mb": used.ru_maxrss / 1024}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="one row in twenty: does it run?")
    options.add_argument("--part", choices=PARTS, help="this part only, in this process")
    options.add_argument("--share", type=int, default=1, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.part:
        print(json.dumps(PARTS[chosen.part](chosen.share)))
        return
    found = {}
    for part in PARTS:
        found[part] = in_a_process(part, QUICK_SHARE if chosen.quick else 1)
        load = os.getloadavg()[0]
        print(f"{part}: {json.dumps(found[part])}, load {load:.1f}", flush=True)
    print(json.dumps(summary(found)))


def summary(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        "adult_seconds": found["adult"]["seconds"],
        "adult_cpu_seconds": found["adult"]["cpu_seconds"],
        "adult_peak_mb": found["adult"]["peak_mb"],
        "large_seconds": found["large"]["seconds"],
        "large_cpu_seconds": found["large"]["cpu_seconds"],
        "large_peak_mb": found["large"]["peak_mb"],
        "real_vs_real": {name: found["real_vs_real"][name] for name in ("at_ceiling", "of", "below")},
        "shuffled": {name: found["shuffled"][name] for name in SHUFFLED},
        "copies_flagged": found["copies"]["flagged"],
        "flagged_without_copies": found["copies"]["flagged_without_copies"],
        "gigabyte": {name: found["gigabyte"][name] for name in ("seconds", "cpu_seconds", "peak_mb", "rows")},
        "load": os.getloadavg()[0],
    }


if __name__ == "__main__":
    main()
