"""What a report is about: the figures, the schema they were measured by, and where everything came from."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from importlib.metadata import version

from pydantic import Field

from synth import VERSION
from synth.certificate.certificate import Certificate
from synth.certificate.verification import Finding
from synth.metrics.attacks.risk import Interval, wilson
from synth.metrics.evaluation import Evaluation, Risk
from synth.metrics.registry import UTILITY
from synth.metrics.utility import Scores
from synth.schema import Identifier, Schema, Strict

LIBRARIES = ("numpy", "pandas", "scikit-learn", "scipy")


class TableFile(Strict):
    role: str = Field(description="What the table is to the evaluation.")
    name: str = Field(description="The file's name, without its folder.")
    sha256: str | None = Field(description="Digest of the file; null where the rows came from no single file.")
    rows: int = Field(description="How many rows it has.")


class Provenance(Strict):
    """Enough to do the evaluation again and to recognise the tables."""

    date: str = Field(description="When it was measured, UTC.")
    version: str = Field(VERSION, description="Version of fedsynth.")
    libraries: dict[str, str] = Field(description="Versions of what the figures were computed with.")
    tables: list[TableFile] = Field(description="The tables that were compared.")
    schema_origin: str = Field(description="Where the schema came from, in words.")
    left_out: list[str] = Field(description="Columns that were not compared: identifiers.")


def provenance(tables: list[TableFile], schema_origin: str, schema: Schema) -> Provenance:
    return Provenance(
        date=dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        libraries={name: version(name) for name in LIBRARIES},
        tables=tables,
        schema_origin=schema_origin,
        left_out=[name for name, column in schema.columns.items() if isinstance(column, Identifier)],
    )


@dataclass(frozen=True)
class Subject:
    evaluation: Evaluation
    schema: Schema
    provenance: Provenance
    certificate: Certificate | None = None
    findings: tuple[Finding, ...] = ()  # what checking the certificate found
    foretold: str | None = None  # what the plan's forecast warned of
    plan_name: str | None = None
    holdout_option: str = "--holdout"  # by which the reader's command takes rows that the synthesizer never saw

    @property
    def title(self) -> str:
        return "Report on a synthetic table" if self.plan_name is None else f"{self.plan_name}: synthetic table"

    @property
    def failed(self) -> list[Finding]:
        """What of the certificate does not hold for this table."""
        return [finding for finding in self.findings if finding.holds is False]

    @property
    def alarms(self) -> list[str]:
        """What nobody may overlook: first on the page, bold on the terminal, and in evaluation.json."""
        found = []
        if self.failed:
            reasons = "; ".join(f"{finding.what}: {finding.detail}" for finding in self.failed)
            found.append(f"The privacy certificate does NOT hold for this table ({reasons}).")
        if self.certificate is not None and (record := self.certificate.assessment) and record.withheld:
            which = "The table that the certificate is about" if self.failed else "This table"
            found.append(f"{which} is WITHHELD by the gate of its plan: {record.reasons()}.")
        if self.foretold is not None:
            found.append(f"Foretold by the plan: {self.foretold}")
        return found


@dataclass(frozen=True)
class UtilityFigure:
    """One measure over the classifiers that were run, or why there is none."""

    synthetic: float | None
    real: float | None
    omitted: str | None


def utility_figures(evaluation: Evaluation) -> dict[str, UtilityFigure]:
    """Every utility measure of the registry: means over all classifiers, Φ over its own five."""
    figures = {}
    for metric in UTILITY:
        group, measure = ("findiff_five", "accuracy") if metric.name == "phi" else ("all", metric.name)
        figures[metric.name] = _mean(evaluation, group, measure)
    return figures


def _mean(evaluation: Evaluation, group: str, measure: str) -> UtilityFigure:
    view = evaluation.utility
    if view is None:
        return UtilityFigure(None, None, evaluation.utility_omitted or "no classifier was run")
    if group not in view.means:
        return UtilityFigure(None, None, "not all of its classifiers were run")
    on_synthetic, on_real = view.means[group].synthetic, view.means[group].real
    if not isinstance(on_synthetic, Scores):
        return UtilityFigure(None, getattr(on_real, measure, None), on_synthetic.reason)
    if not isinstance(on_real, Scores):
        return UtilityFigure(getattr(on_synthetic, measure), None, f"on real rows: {on_real.reason}")
    return UtilityFigure(getattr(on_synthetic, measure), getattr(on_real, measure), None)


def is_counted(risk: Risk) -> bool:
    """Whether the attack counts hits on people: then its value is what remains after the strangers' rate."""
    return risk.value is not None and "attack_rate" in risk.details


def attack_rate(risk: Risk) -> Interval | None:
    """What compares with the null value: the plain success rate."""
    if not is_counted(risk):
        return risk.value
    return wilson(round(risk.details["successes"] or 0), round(risk.details["attacks"] or 0))
