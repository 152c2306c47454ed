"""report.json of a simulation: what was run, and how the synthetic table compares with the rows it was made from.

On one machine the pooled rows are at hand, so they can be compared; in a federation nobody has them, and only
assessment under differential privacy is possible. These figures are not private and must not be published with a
table made from real people's rows.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from aggregator.publish import Release
from aggregator.watch import Watch
from fed_node.source import read_records_from
from fedsynth.simulate import Folders, real_records
from synth.archive import write_durably
from synth.encoding.records import Codec
from synth.metrics import fidelity
from synth.metrics.utility import utility
from synth.plan import Plan

QUICK = ("logistic_regression", "gradient_boosting")


def write_report(plan: Plan, folders: Folders, release: Release, test: Path | None, watch: Watch) -> dict[str, Any]:
    """Fidelity always; utility where there are held-out rows and a target."""
    codec = Codec(plan.table)
    real = codec.decode(real_records(plan, folders))
    watch.stage("comparing with the real rows")
    report: dict[str, Any] = {
        "run": release.certificate.run,
        "plan_digest": plan.digest(),
        "rows": len(release.table),
        "claim": release.certificate.claim.model_dump(),
        "private": False,  # computed from real rows without noise
        "fidelity": {
            "jsd": fidelity.jsd(real, release.table, plan.table),
            "wd": fidelity.wd(real, release.table, plan.table),
            "tvd_one_way": fidelity.tvd_one_way(real, release.table, plan.table),
            "tvd_two_way": fidelity.tvd_two_way(real, release.table, plan.table),
        },
    }
    if test is not None and plan.table.target is not None:
        watch.stage("training classifiers on real and synthetic rows")
        held_out = codec.decode(read_records_from(test, plan.table))
        report["utility"] = {
            "trained on real rows": _scores(real, held_out, plan, real),
            "trained on synthetic rows": _scores(release.table, held_out, plan, real),
        }
    write_durably(folders.out / "report.json", (json.dumps(report, indent=2) + "\n").encode())
    return report


def _scores(train: pd.DataFrame, test: pd.DataFrame, plan: Plan, real: pd.DataFrame) -> dict[str, Any]:
    """Two quick classifiers; `fedsynth evaluate` runs them all."""
    scores = utility(train, test, plan.table, seed=0, classifiers=QUICK, fitted_on=real)
    return {name: asdict(score) for name, score in scores.items()}
