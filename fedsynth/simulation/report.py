"""report.json and report.html of a simulation: how the synthetic table compares with the rows it was made from.

On one machine the pooled rows are at hand, so they can be compared; in a federation nobody has them, and only
assessment under differential privacy is possible. These figures are not private and must not be published with a
table made from real people's rows.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from aggregator.publish import Release
from aggregator.watch import Watch
from fed_node.settings import PartySettings
from fed_node.source import read_records_from, source_of
from fedsynth.certificate.checking import is_signed, sha256_of, write_beside
from fedsynth.evaluation.quick import quick_evaluation
from fedsynth.evaluation.sequence_files import sequences_in
from fedsynth.report.page import page
from fedsynth.report.subject import Subject, TableFile, provenance
from fedsynth.simulation.simulate import Folders, real_records
from synth.certificate.verification import Evidence, check_certificate
from synth.encoding.records import Codec
from synth.forecast import forecast
from synth.messages.archive import write_durably
from synth.metrics.evaluation import Evaluation
from synth.metrics.evaluation_views import SequenceView
from synth.plan import Plan

TABLE = "synthetic.csv"
HEADLINES = {"tvd_one_way": "a column", "tvd_two_way": "a pair of columns"}
FIDELITY = ("jsd", "wd", "tvd_one_way", "tvd_two_way")  # what the papers print


def write_report(plan: Plan, folders: Folders, release: Release, test: Path | None, watch: Watch) -> dict[str, Any]:
    """Fidelity always; utility where there are held-out rows and a discrete target."""
    codec = Codec(plan.table)
    watch.stage("comparing with the real rows")
    real = codec.decode(real_records(plan, folders))
    held_out = None if test is None else codec.decode(read_records_from(test, plan.table))
    evaluation = quick_evaluation(real, release.table, plan.table, held_out)
    evaluation = evaluation.model_copy(update={"sequences": _sequences(plan, folders, test)})
    report = _summary(plan, release, evaluation)
    write_durably(folders.out / "report.json", (json.dumps(report, indent=2) + "\n").encode())
    write_durably(folders.out / "report.html", page(_subject(plan, folders, release, test, evaluation)).encode())
    write_beside(folders.out / "certificate.json")
    return report


def _sequences(plan: Plan, folders: Folders, test: Path | None) -> SequenceView | None:
    if plan.table.sequence is None:
        return None
    homes = [folders.party(party.name) for party in plan.parties]
    real = [PartySettings.load(home).source(home) for home in homes]
    made = next(path for path in (folders.out / name for name in (TABLE, "synthetic.parquet")) if path.exists())
    return sequences_in(plan.table, real, source_of(made), None if test is None else source_of(test))


def _summary(plan: Plan, release: Release, evaluation: Evaluation) -> dict[str, Any]:
    report: dict[str, Any] = {
        "run": release.certificate.run,
        "plan_digest": plan.digest(),
        "rows": len(release.table),
        "claim": release.certificate.claim.model_dump(),
        "private": False,  # computed from real rows without noise
        "fidelity": {name: evaluation.score(name).value for name in FIDELITY},
        "between halves of the real rows": {name: evaluation.score(name).ceiling for name in FIDELITY},
    }
    if (view := evaluation.sequences) is not None:
        report["sequences"] = {each.name: each.value for each in view.figures} | {"controls": view.controls}
    if evaluation.utility is not None:
        views = evaluation.utility.classifiers
        report["utility"] = {
            "trained on real rows": {name: asdict(view.real) for name, view in views.items()},
            "trained on synthetic rows": {name: asdict(view.synthetic) for name, view in views.items()},
        }
    return report


def _subject(plan: Plan, folders: Folders, release: Release, test: Path | None, evaluation: Evaluation) -> Subject:
    digest = sha256_of(folders.out / TABLE)
    tables = [
        TableFile(role="real", name="all parties' rows", sha256=None, rows=evaluation.rows_real),
        TableFile(role="synthetic", name=TABLE, sha256=digest, rows=evaluation.rows_synthetic),
    ]
    if test is not None and evaluation.rows_holdout is not None:
        tables.append(TableFile(role="holdout", name=test.name, sha256=sha256_of(test), rows=evaluation.rows_holdout))
    origin = provenance(tables, f"of the plan '{plan.name}'", plan.table)
    evidence = Evidence(is_signed, plan=plan, tables={TABLE: digest}, unsigned=True)
    findings = check_certificate(release.certificate, evidence)
    told = forecast(plan)
    return Subject(
        evaluation,
        plan.table,
        origin,
        release.certificate,
        tuple(findings),
        foretold=None if told is None else told.warning,
        plan_name=plan.name,
        holdout_option="--test",
    )


def headlines(report: dict[str, Any]) -> str:
    """The two figures that say most, a line each, beside what two halves of the real rows have between them."""
    lines = ["Distance from the real rows (total variation; between two halves of them):"]
    for metric, words in HEADLINES.items():
        value, ceiling = report["fidelity"][metric], report["between halves of the real rows"][metric]
        if value is not None and ceiling is not None:
            lines.append(f"  {words:18} {value:.3f}  ({ceiling:.3f})")
    return "\n".join(lines)
