"""What `fedsynth evaluate` reads and writes: tables through a schema, evaluation.json and report.html."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from fed_node.source import source_of
from fedsynth.certificate.checking import is_signed, read_certificate, sha256_of
from fedsynth.documents import read_document, read_plan, read_schema
from fedsynth.draft import draft_schema
from fedsynth.evaluation.sampled_reading import MOST_ROWS, Reading, read_sample, read_text
from fedsynth.evaluation.sequence_files import sequences_in
from fedsynth.report.assessed import is_complete
from fedsynth.report.page import page
from fedsynth.report.subject import Subject, TableFile
from synth.certificate.certificate import Certificate
from synth.certificate.verification import Evidence, Finding, check_certificate
from synth.errors import InputError, OutputError
from synth.messages.archive import write_durably
from synth.metrics.evaluation import Evaluation
from synth.metrics.evaluation_views import SequenceView
from synth.plan import parse_schema
from synth.schema import Schema

FORMAT = "fedsynth-evaluation-1"
EVALUATION, REPORT = "evaluation.json", "report.html"
SIMULATED = "report.json"  # stands beside the report.html of a simulation


@dataclass(frozen=True)
class Tables:
    """The files that are compared; the same schema reads all of them."""

    real: Path
    synthetic: Path
    holdout: Path | None

    def roles(self) -> dict[str, Path]:
        files = {"real": self.real, "synthetic": self.synthetic}
        return files if self.holdout is None else files | {"holdout": self.holdout}


def schema_for(tables: Tables, given: Path | None, target: str | None) -> tuple[Schema, str]:
    """The schema and, in words, where it came from. Without a file it is drafted from the real rows, holdout rows
    included: a label that only they have is real, too."""
    if given is not None:
        if target is not None:
            raise InputError("--target goes with a drafted schema; with --schema name it there, under 'target'")
        content = read_document(given)
        is_schema = isinstance(content, dict) and "columns" in content
        return (read_schema(given) if is_schema else read_plan(given).table), f"read from {given.name}"
    frames = [read_text(path, MOST_ROWS) for path in (tables.real, tables.holdout) if path is not None]
    _require_same_columns(tables, [list(frame.columns) for frame in frames])
    drafted = parse_schema(draft_schema(pd.concat(frames, ignore_index=True), target))
    return drafted, (
        "drafted from the real rows, because none was given (--schema): kinds, bounds and labels are guesses"
    )


def require_place(out: Path) -> None:
    """Whether the files could be written, and would replace nobody else's: asked before minutes of measuring."""
    try:
        foreign = (out / REPORT).exists() and (not (out / EVALUATION).exists() or (out / SIMULATED).exists())
        standing = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
        tempfile.TemporaryFile(dir=standing).close()
    except OSError as error:
        raise OutputError(f"cannot write into {out}: {error.strerror}; choose another --out") from None
    if foreign:
        raise InputError(f"{out / REPORT} was not written by fedsynth evaluate and would be lost; choose another --out")


def read_all(tables: Tables, schema: Schema, seed: int, *, drafted: bool) -> dict[str, Reading]:
    try:
        return {
            role: read_sample(path, schema, f"the {role} table", seed=seed, most_rows=MOST_ROWS)
            for role, path in tables.roles().items()
        }
    except InputError as error:
        if not drafted:
            raise
        remedy = "The schema was drafted from the real rows; make one with fedsynth schema draft, complete it"
        raise InputError(f"{error}. {remedy}, and give it with --schema.") from None


def with_samplings(found: Evaluation, readings: dict[str, Reading]) -> Evaluation:
    """The evaluation, which also says which tables it did not see whole."""
    said = [
        f"everything about the {role} table: {reading.table.rows:,} of its {reading.rows_in_file:,} rows"
        for role, reading in readings.items()
        if reading.is_sampled
    ]
    return found.model_copy(update={"samplings": said + found.samplings})


def sequences_of(tables: Tables, schema: Schema, seed: int) -> SequenceView | None:
    """How sequences move, where the schema says that there are any."""
    held = None if tables.holdout is None else source_of(tables.holdout)
    return sequences_in(schema, [source_of(tables.real)], source_of(tables.synthetic), held, seed)


def described(tables: Tables, rows: dict[str, int]) -> list[TableFile]:
    return [
        TableFile(role=role, name=path.name, sha256=sha256_of(path), rows=rows[role])
        for role, path in tables.roles().items()
    ]


def certified(certificate: Path | None, synthetic: Path) -> tuple[Certificate | None, tuple[Finding, ...]]:
    """The certificate, checked as `fedsynth verify` would without pinned keys: above all, is it about this table?"""
    if certificate is None:
        return None, ()
    document = read_certificate(certificate)
    if document.assessment is not None and not is_complete(document.assessment):
        raise InputError(f"{certificate} is not a certificate of this version (look at: assessment).")
    evidence = Evidence(is_signed=is_signed, tables={synthetic.name: sha256_of(synthetic)}, unsigned=True)
    return document, tuple(check_certificate(document, evidence))


def as_json(subject: Subject) -> str:
    document = {
        "format": FORMAT,
        "provenance": subject.provenance.model_dump(mode="json"),
        "evaluation": subject.evaluation.model_dump(mode="json"),
        "certificate": None if subject.certificate is None else subject.certificate.model_dump(mode="json"),
        "findings": [asdict(finding) for finding in subject.findings],
        "alarms": subject.alarms,
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_files(subject: Subject, out: Path) -> list[Path]:
    written = {EVALUATION: as_json(subject), REPORT: page(subject)}
    for name, content in written.items():
        write_durably(out / name, content.encode())
    return [out / name for name in written]


def _require_same_columns(tables: Tables, headers: list[list[str]]) -> None:
    if len(headers) > 1 and not set(headers[0]) & set(headers[1]):
        raise InputError(  # their names are not shown: they are probably the cells of a row
            f"{tables.real} and {tables.holdout} have no column in common; is there a header line in both?"
        )
    if len(headers) > 1 and set(headers[0]) != set(headers[1]):
        different = ", ".join(sorted(set(headers[0]) ^ set(headers[1])))
        raise InputError(
            f"{tables.real} and {tables.holdout} must have the same columns, and differ in: {different}; export both "
            "alike, or give a --schema that names the columns to compare"
        )
