"""Our values must be theirs: `python -m benchmarks.crosscheck`, or `make crosscheck-metrics`.

Three seeded tables of 400 rows, mixed kinds; a tenth of the synthetic rows are copies, so that attacks succeed.

    sdmetrics     complements of KS and of total variation, contingency and correlation similarity: equal to 1e-9
    anonymeter    linkability and inference: equal counts, risks and intervals, to 1e-5 (its z is exact, ours has seven
                  digits). It calls a number right within 5 % of the *guess*, we within 5 % of the truth: numeric
                  secrets are counted by its rule here, from our guesses. Singling out: the intervals must overlap

Exits with an error when a value differs.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.environments import ROOT, python_of
from synth.metrics.attacks.gower import nearest_without_each
from synth.metrics.attacks.inference import RELATIVE_TOLERANCE, inference
from synth.metrics.attacks.linkability import linkability, split_columns
from synth.metrics.attacks.risk import Attempts
from synth.metrics.attacks.singling_out import singling_out
from synth.metrics.fidelity import tvd_by_column, tvd_by_pair
from synth.metrics.fidelity_columns import ks_by_column
from synth.metrics.fidelity_pairs import associations
from synth.metrics.tables import Table, table_of
from synth.schema import Categorical, Continuous, Schema

ROWS, COPIED, SEED = 400, 40, 0
SINGLING_OUT_ATTACKS = 300
SAME, NEARLY_SAME = 1e-9, 1e-5
NUMERIC, DISCRETE = ("height", "weight", "dose"), ("ward", "stage", "ill")
SCHEMA = Schema(
    columns={
        **{name: Continuous(min=0, max=1000, decimals=9) for name in NUMERIC},
        "ward": Categorical(categories=list("abcdefgh")),
        "stage": Categorical(categories=["I", "II", "III", "IV"]),
        "ill": Categorical(categories=["no", "yes"]),
    }
)


def people(seed: int, rows: int = ROWS) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    height = rng.normal(170, 12, rows)
    weight = height / 2 + rng.normal(0, 8, rows)
    stage = np.clip((weight - 60) // 12, 0, 3).astype(int)
    return pd.DataFrame(
        {
            "height": height.round(9),
            "weight": weight.round(9),
            "dose": rng.gamma(2.0, weight / 40).round(9),
            "ward": rng.choice(list("abcdefgh"), rows),
            "stage": np.array(["I", "II", "III", "IV"])[stage],
            "ill": np.where(rng.random(rows) < stage / 4, "yes", "no"),
        }
    )


def main() -> None:
    real, unseen = people(1), people(3)
    made = pd.concat([real.head(COPIED), people(2, ROWS - COPIED)], ignore_index=True)
    tables = [table_of(rows, SCHEMA) for rows in (real, made, unseen)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        split = split_columns(tables[0].columns, np.random.default_rng(SEED))
        kinds = {"numeric": NUMERIC, "discrete": DISCRETE, "split": split}
        (folder / "kinds.json").write_text(json.dumps(kinds | {"singling_out_attacks": SINGLING_OUT_ATTACKS}))
        for what, rows in (("real", real), ("synthetic", made), ("holdout", unseen)):
            rows.to_csv(folder / f"{what}.csv", index=False)
        differences = [*against_sdmetrics(folder, *tables[:2]), *against_anonymeter(folder, *tables)]
    if differences:
        raise SystemExit("\n".join(["not the same:", *differences]))
    print("all the same")


def against_sdmetrics(folder: Path, real: Table, made: Table) -> list[str]:
    gaps = tvd_by_pair(real, made, SCHEMA)
    left, right = associations(real, SCHEMA).pearson, associations(made, SCHEMA).pearson
    ours = {f"KSComplement {n}": 1.0 - (gap or 0.0) for n, gap in ks_by_column(real, made, SCHEMA).items()}
    ours |= {f"TVComplement {name}": 1.0 - tvd_by_column(real, made, SCHEMA)[name] for name in DISCRETE}
    ours |= {f"ContingencySimilarity {a} {b}": 1.0 - gaps[a, b] for a, b in combinations(DISCRETE, 2)}
    for (i, a), (j, b) in combinations(enumerate(NUMERIC), 2):
        ours[f"CorrelationSimilarity {a} {b}"] = 1.0 - abs(float(left[i, j] - right[i, j])) / 2.0
    theirs = asked("sdmetrics", folder)
    return [said for name in theirs for said in compared(f"sdmetrics {name}", ours[name], theirs[name], SAME)]


def against_anonymeter(folder: Path, real: Table, made: Table, unseen: Table) -> list[str]:
    attacked: dict[str, Attempts | None] = {
        "linkability": linkability(real, made, SCHEMA, holdout=unseen, attacks=ROWS, seed=SEED),
        "singling_out": singling_out(real, made, SCHEMA, holdout=unseen, attacks=SINGLING_OUT_ATTACKS, seed=SEED),
    }
    secrets = inference(real, made, SCHEMA, holdout=unseen, attacks=ROWS, seed=SEED)
    secrets |= {name: by_their_rule(real, made, unseen, name) for name in NUMERIC}
    attacked |= {f"inference {name}": attempts for name, attempts in secrets.items()}
    differences = []
    for name, theirs in asked("anonymeter", folder).items():
        ours = attacked[name]
        if ours is None:
            differences.append(f"anonymeter {name}: we found nothing to try")
        elif name == "singling_out":
            differences += overlapping(f"anonymeter {name}", ours, theirs)
        else:
            mine: dict[str, float] = {"successes": ours.successes, "control_successes": ours.control_successes or 0}
            mine |= {"risk": ours.risk.value, "low": ours.risk.low, "high": ours.risk.high}
            for figure, value in mine.items():
                differences += compared(f"anonymeter {name} {figure}", value, theirs[figure], NEARLY_SAME)
    return differences


def by_their_rule(real: Table, made: Table, unseen: Table, name: str) -> Attempts:
    """Our guesses of a number, right when they are within 5 % of the guess; what is blind is not compared."""

    def right(targets: Table) -> int:
        guess = made.numbers[name][nearest_without_each(targets, made)[name]]
        return int((np.abs(guess - targets.numbers[name]) / (guess + 1e-12) <= RELATIVE_TOLERANCE).sum())

    return Attempts(real.rows, right(real), 0, unseen.rows, right(unseen))


def compared(what: str, ours: float, theirs: float, tolerance: float) -> list[str]:
    print(f"{what:52} ours {ours:.9g}  theirs {theirs:.9g}")
    return [] if abs(ours - theirs) <= tolerance else [f"{what}: ours {ours}, theirs {theirs}"]


def overlapping(what: str, ours: Attempts, theirs: dict[str, float]) -> list[str]:
    risk = ours.risk
    print(f"{what:52} ours {risk.low:.3f} to {risk.high:.3f}  theirs {theirs['low']:.3f} to {theirs['high']:.3f}")
    return [] if risk.low <= theirs["high"] and theirs["low"] <= risk.high else [f"{what}: intervals apart"]


def asked(library: str, folder: Path) -> dict[str, Any]:
    """What the library says about the tables in the folder."""
    command = [str(python_of(library)), "-m", f"benchmarks.crosscheck.with_{library}", str(folder)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    main()
