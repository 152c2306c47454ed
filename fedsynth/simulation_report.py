"""report.json of a simulation: what was run, and how the synthetic table compares with the rows it was made from.

On one machine the pooled rows are at hand, so they can be compared; in a federation nobody has them, and only
assessment under differential privacy is possible. These figures are not private and must not be published with a
table made from real people's rows.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from aggregator.publish import Release
from aggregator.watch import Watch
from fed_node.source import read_records_from
from fedsynth.simulate import Folders, real_records
from synth.archive import write_durably
from synth.encoding.records import Codec
from synth.metrics import fidelity, utility
from synth.plan import Plan


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
        "fidelity": fidelity.summary(real, release.table, plan.table),
    }
    if test is not None and plan.table.target is not None:
        watch.stage("training classifiers on real and synthetic rows")
        held_out = codec.decode(read_records_from(test, plan.table))
        report["utility"] = {
            "trained on real": utility.utility(real, held_out, plan.table, seed=0),
            "trained on synthetic": utility.utility(release.table, held_out, plan.table, seed=0),
        }
    write_durably(folders.out / "report.json", (json.dumps(report, indent=2) + "\n").encode())
    return report
