"""The release: table, model, certificate, plan and schema, all or nothing."""

from __future__ import annotations

import datetime as dt
import hashlib
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from aggregator.checkpoint import Position
from crypto.keys import IdentityKey
from synth import VERSION
from synth.assessment.record import AssessmentRecord
from synth.certificate.certificate import (
    Certificate,
    Signature,
    SignedStatement,
    claim_over,
    noise_in_words,
    sampling_in_words,
)
from synth.certificate.linkage import linkage_record, relation_of
from synth.certificate.participation import Absent, Participation, first_missing
from synth.encoding.formulas import formulas_in
from synth.encoding.records import Records
from synth.encoding.unrolling import written
from synth.errors import OutputError, PlanError
from synth.interface import Synthesizer
from synth.messages import archive
from synth.plan import Plan
from synth.privacy.events import as_records
from synth.programme import whole_cost

ASSESSMENT, MODEL = "assessment.json", "model.npz"
WITHHELD = "WITHHELD.txt"  # lies beside a table that its plan's gate did not let through, and says why
PAPERS = ("certificate.json", "plan.json", "schema.json", ASSESSMENT, WITHHELD)  # what may be seen of a withheld one


@dataclass(frozen=True)
class Release:
    """What a run leaves behind."""

    folder: Path
    table: pd.DataFrame
    certificate: Certificate

    @property
    def withheld(self) -> str | None:
        """Why the plan's gate is closed; None where it is open, or there is none."""
        found = self.certificate.assessment
        return found.reasons() if found is not None and found.withheld else None


def publish(
    plan: Plan,
    synthesizer: Synthesizer,
    rows: Records,
    statements: list[SignedStatement],
    assessment: AssessmentRecord | None,
    position: Position,
    folder: Path,
    simulated: bool,
    key: IdentityKey | None = None,
) -> Release:
    """Write everything beside its place first, then move it: a full disk leaves the old release or none."""
    table = written(plan.table, plan.layout, rows)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(dir=folder, prefix=".partial-"))
    except OSError as error:
        raise _cannot_write(folder, error) from None
    try:
        digests = _write_tables(plan, table, partial)
        meta = {"plan": plan.model_dump(mode="json", by_alias=True), "run": position.run, "version": VERSION}
        (partial / MODEL).write_bytes(archive.pack(synthesizer.state(), meta))
        digests |= {MODEL: _sha256(partial / MODEL)}
        certificate = certify(plan, statements, position, digests, simulated, assessment)
        if key is not None:
            certificate = signed(certificate, key)
        (partial / "certificate.json").write_text(certificate.model_dump_json(indent=2) + "\n")
        (partial / "plan.json").write_text(plan.model_dump_json(indent=2, by_alias=True) + "\n")
        (partial / "schema.json").write_text(plan.table.model_dump_json(indent=2) + "\n")
        for name, text in _about(assessment).items():
            (partial / name).write_text(text)
        for name in (ASSESSMENT, WITHHELD):  # of an earlier release in this place
            (folder / name).unlink(missing_ok=True)
        for path in sorted(partial.iterdir()):
            path.replace(folder / path.name)
    except OSError as error:
        raise _cannot_write(folder, error) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return Release(folder, table, certificate)


def require_no_formulas(plan: Plan) -> None:
    """Refuse to make a CSV file that does things when somebody opens it in a spreadsheet."""
    if "csv" in plan.output.formats and plan.output.formulas is None and (columns := formulas_in(plan.table)):
        raise PlanError(
            f"the schema's labels in {', '.join(map(repr, columns))} are formulas to a spreadsheet, which would carry "
            "them out. Write other labels, or output.formats [parquet], or output.formulas 'are words'."
        )


def _about(assessment: AssessmentRecord | None) -> dict[str, str]:
    """The assessment's figures and, where the gate is closed, the mark that keeps the table from being fetched."""
    if assessment is None:
        return {}
    figures = {ASSESSMENT: assessment.model_dump_json(indent=2) + "\n"}
    return figures | (
        {WITHHELD: f"Withheld by the plan's gate: {assessment.reasons()}.\n"} if assessment.withheld else {}
    )


def certify(
    plan: Plan,
    statements: list[SignedStatement],
    position: Position,
    digests: dict[str, str],
    simulated: bool,
    assessment: AssessmentRecord | None = None,
) -> Certificate:
    stated = [signed.statement for signed in statements]
    sums = [Participation.model_validate(record) for record in position.sums]
    absent = _absent(plan, sums, {statement.party for statement in stated})
    return Certificate(
        run=position.run,
        issued=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        plan_name=plan.name,
        plan_digest=plan.digest(),
        schema_digest=plan.table.digest(),
        profile=plan.profile,
        code_version=VERSION,
        secure_sum=plan.secure_sum.model_dump(mode="json") | {"minimum_parties": plan.minimum_parties},
        noise=noise_in_words(plan),
        sampling=sampling_in_words(plan),
        claim=claim_over(stated, absent, plan.delta).model_copy(update={"relation": relation_of(plan)}),
        simulated=simulated,
        table_sha256={name: digest for name, digest in digests.items() if name != MODEL},
        model_sha256={name: digest for name, digest in digests.items() if name == MODEL},
        statements=statements,
        participation=sums,
        absent=absent,
        assessment=assessment,
        linkage=linkage_record(plan),
    )


def _absent(plan: Plan, sums: list[Participation], stated: set[str]) -> list[Absent]:
    """The lost, with all that they may have spent."""
    return [
        Absent(
            party=party.name,
            missing_from=first_missing(sums, party.name),
            at_most=as_records(whole_cost(plan, party.name)),
        )
        for party in plan.parties
        if party.name not in stated
    ]


def signed(certificate: Certificate, key: IdentityKey) -> Certificate:
    """The certificate with the aggregator's signature over everything else in it."""
    signature = key.sign(certificate.signed_text().encode()).hex()
    public_key = key.identity.public.hex()
    return certificate.model_copy(update={"signature": Signature(public_key=public_key, signature=signature)})


def _write_tables(plan: Plan, table: pd.DataFrame, folder: Path) -> dict[str, str]:
    if "csv" in plan.output.formats:
        table.to_csv(folder / "synthetic.csv", index=False)
    if "parquet" in plan.output.formats:
        table.to_parquet(folder / "synthetic.parquet", index=False)
    return {path.name: _sha256(path) for path in sorted(folder.iterdir())}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _cannot_write(folder: Path, error: OSError) -> OutputError:
    return OutputError(
        f"cannot write the release to {folder}: {error.strerror}. Free space or choose another folder with --out; "
        "nothing half-written was left, and the run can be resumed."
    )
