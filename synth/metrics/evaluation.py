"""The result of an evaluation: plain values only, so it can be stored as JSON and drawn by any report.

It holds exact statistics of the real rows (histograms, associations, scores), with no noise: it belongs to whoever may
see those rows, and leaves them only like the rows themselves would. NaN and infinity cannot occur; a figure that does
not exist is None with a reason beside it.
"""

from __future__ import annotations

from pydantic import Field

from synth.metrics.attacks.risk import Interval
from synth.metrics.evaluation_views import SequenceView, View
from synth.metrics.utility import Omission, Scores


class Score(View):
    """One fidelity figure; `metric` is its name in the registry."""

    metric: str
    value: float | None
    ceiling: float | None  # the same figure between two halves of the real rows
    omitted: str | None = None  # why a value is None


class Summary(View):
    """Of the filled cells of a numeric column (times in seconds since the lowest declared one)."""

    mean: float
    deviation: float
    low: float
    median: float
    high: float


class ColumnView(View):
    """One column's overlay. Discrete: one share per label. Numeric: one share per bin between the edges."""

    name: str
    kind: str
    labels: list[str] | None
    edges: list[float] | None
    real: list[float]
    synthetic: list[float]
    real_empty: float  # share of empty cells
    synthetic_empty: float
    figures: dict[str, float | None]  # tvd, hellinger; jsd or wd and ks
    real_summary: Summary | None
    synthetic_summary: Summary | None


class MatrixView(View):
    """One association of rows with columns, in both tables."""

    name: str
    rows: list[str]
    columns: list[str]
    real: list[list[float]]
    synthetic: list[list[float]]


class PairsView(View):
    mixed: MatrixView  # all columns in schema order: the heat map of the report
    others: list[MatrixView]  # pearson, cramers_v, theils_u, correlation_ratio
    tvd: list[list[float]]  # two-way total variation in schema order, diagonal 0


class ClassifierView(View):
    synthetic: Scores | Omission
    real: Scores | Omission


class UtilityView(View):
    target: str
    train_rows: int
    test_rows: int
    tested_on_unseen: bool  # False: no holdout was given, so the test rows were also the synthesizer's
    classifiers: dict[str, ClassifierView]
    means: dict[str, ClassifierView]  # ctgan_four, findiff_five, all


class Risk(View):
    """One privacy figure. `null` is what a harmless table would show, `baseline` what blind guessing achieves."""

    metric: str
    value: Interval | None
    null: Interval | None = None
    baseline: Interval | None = None
    flagged: bool = False
    weak_evidence: bool = False
    details: dict[str, float | None] = Field(default_factory=dict)
    omitted: str | None = None


class Evaluation(View):
    schema_digest: str
    rows_real: int
    rows_synthetic: int
    rows_holdout: int | None
    seed: int
    scores: list[Score]
    columns: list[ColumnView]
    pairs: PairsView | None  # None: there is only one column
    utility: UtilityView | None
    utility_omitted: str | None
    risks: list[Risk]
    inference_by_column: dict[str, Risk]
    samplings: list[str]  # which figures looked at a sample, in words
    seconds: float
    sequences: SequenceView | None = None  # only where the schema has a sequence, and there are enough of them

    def score(self, metric: str) -> Score:
        return next(score for score in self.scores if score.metric == metric)

    def risk(self, metric: str) -> Risk:
        return next(risk for risk in self.risks if risk.metric == metric)

    @property
    def flagged(self) -> list[str]:
        """Names of the privacy metrics in which the table did worse than its control."""
        return [risk.metric for risk in self.risks if risk.flagged]
