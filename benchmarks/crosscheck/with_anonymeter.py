"""anonymeter on the tables of a folder: runs in its own environment and prints one JSON object.

Every row is attacked, so nothing about linkability and inference is random but their blind baseline. Singling out draws
its descriptions at random: for it there is an interval.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import pandas as pd
from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator, SinglingOutEvaluator

warnings.simplefilter("ignore")
folder = Path(sys.argv[1])
kinds = json.loads((folder / "kinds.json").read_text())
types = dict.fromkeys(kinds["numeric"], "float64") | dict.fromkeys(kinds["discrete"], "object")
real, made, unseen = (pd.read_csv(folder / f"{name}.csv", dtype=types) for name in ("real", "synthetic", "holdout"))
unseen.index = unseen.index + len(real)
everybody = len(real)


def told(evaluator: object) -> dict[str, float]:
    results = evaluator.results(confidence_level=0.95)
    risk = results.risk()
    return {
        "successes": int(results.n_success),
        "control_successes": int(results.n_control),
        "risk": float(risk.value),
        "low": float(risk.ci[0]),
        "high": float(risk.ci[1]),
    }


found = {
    "linkability": told(
        LinkabilityEvaluator(
            ori=real, syn=made, control=unseen, aux_cols=tuple(kinds["split"]), n_attacks=everybody
        ).evaluate(n_jobs=1)
    )
}
for secret in real.columns:
    known = [name for name in real.columns if name != secret]
    found[f"inference {secret}"] = told(
        InferenceEvaluator(
            ori=real,
            syn=made,
            control=unseen,
            aux_cols=known,
            secret=secret,
            regression=secret in kinds["numeric"],  # its default takes every secret for a category
            n_attacks=everybody,
        ).evaluate(n_jobs=1)
    )
found["singling_out"] = told(
    SinglingOutEvaluator(
        ori=real, syn=made, control=unseen, n_attacks=kinds["singling_out_attacks"], n_cols=3
    ).evaluate(mode="multivariate")
)
print(json.dumps(found))
