"""What `fedsynth evaluate` reads and writes: tables through a schema, evaluation.json and report.html."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from fedsynth.commands_verify import is_signed, read_certificate, sha256_of
from fedsynth.documents import read_document, read_plan, read_schema
from fedsynth.draft import draft_schema
from fedsynth.report.page import page
from fedsynth.report.subject import Subject, TableFile
from fedsynth.sampled_reading import MOST_ROWS, Reading, read_sample, read_text
from synth.archive import write_durably
from synth.certificate import Certificate
from synth.errors import InputError
from synth.metrics.evaluation import Evaluation
from synth.plan import parse_schema
from synth.schema import Schema
from synth.verification import Evidence, Finding, check_certificate

FORMAT = "fedsynth-evaluation-1"


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


def read_all(tables: Tables, schema: Schema, seed: int) -> dict[str, Reading]:
    return {
        role: read_sample(path, schema, f"the {role} table", seed=seed, most_rows=MOST_ROWS)
        for role, path in tables.roles().items()
    }


def with_samplings(found: Evaluation, readings: dict[str, Reading]) -> Evaluation:
    """The evaluation, which also says which tables it did not see whole."""
    said = [
        f"everything about the {role} table: {reading.table.rows:,} of its {reading.rows_in_file:,} rows"
        for role, reading in readings.items()
        if reading.is_sampled
    ]
    return found.model_copy(update={"samplings": said + found.samplings})


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
    evidence = Evidence(is_signed=is_signed, tables={synthetic.name: sha256_of(synthetic)})
    return document, tuple(check_certificate(document, evidence))


def as_json(subject: Subject) -> str:
    document = {
        "format": FORMAT,
        "provenance": subject.provenance.model_dump(mode="json"),
        "evaluation": subject.evaluation.model_dump(mode="json"),
        "certificate": None if subject.certificate is None else subject.certificate.model_dump(mode="json"),
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_files(subject: Subject, out: Path) -> list[Path]:
    written = {"evaluation.json": as_json(subject), "report.html": page(subject)}
    for name, content in written.items():
        write_durably(out / name, content.encode())
    return [out / name for name in written]


def _require_same_columns(tables: Tables, headers: list[list[str]]) -> None:
    if len(headers) > 1 and set(headers[0]) != set(headers[1]):
        different = ", ".join(sorted(set(headers[0]) ^ set(headers[1])))
        raise InputError(
            f"{tables.real} and {tables.holdout} must have the same columns, and differ in: {different}; export both "
            "alike, or give a --schema that names the columns to compare"
        )
