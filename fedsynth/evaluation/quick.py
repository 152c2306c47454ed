"""A first look at a synthetic table in seconds: the quick figures, two classifiers, and whether rows were copied.

What is left out says so in the same place where `fedsynth evaluate` would put its figure.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd

from synth.metrics.attacks.copies import copies
from synth.metrics.comparison import Comparison, halves
from synth.metrics.evaluation import ClassifierView, Evaluation, Risk, Score, UtilityView
from synth.metrics.metric import FidelityMetric
from synth.metrics.registry import FIDELITY, PRIVACY
from synth.metrics.samplings import of_fidelity
from synth.metrics.strangers import why_no_strangers
from synth.metrics.tables import Table, table_of
from synth.metrics.utility import Omission, discrete_target, mean_scores, utility
from synth.metrics.views import column_views, pairs_view
from synth.schema import Schema

CLASSIFIERS = ("logistic_regression", "gradient_boosting")
LEFT_OUT = "left out of this quick look; fedsynth evaluate measures it"
NO_TEST_ROWS = "needs held-out rows: give them by --test"
WEAK = "share_closer_to_real"
QUICK = tuple(metric for metric in FIDELITY if metric.headline or metric.rows is None)
"""Figures that are too costly for all rows are left out, unless they head the report."""


def quick_evaluation(
    real: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema, holdout: pd.DataFrame | None
) -> Evaluation:
    """`holdout` are real rows no party trained on; without them there is no utility."""
    started = time.monotonic()
    truth, made = table_of(real, schema, "the real table"), table_of(synthetic, schema, "the synthetic table")
    unseen = None if holdout is None else table_of(holdout, schema, "the held-out table")
    seen = None if unseen is None else why_no_strangers(truth, unseen, seed=0)
    unseen = None if seen else unseen
    comparison = Comparison(truth, made, seed=0)
    useful = _utility(truth, made, unseen) if seen is None else Omission(seen)
    return Evaluation(
        schema_digest=schema.digest(),
        rows_real=truth.rows,
        rows_synthetic=made.rows,
        rows_holdout=None if unseen is None else unseen.rows,
        seed=0,
        scores=_scores(comparison, halves(truth, seed=0)),
        columns=column_views(comparison),
        pairs=pairs_view(comparison),
        utility=useful if isinstance(useful, UtilityView) else None,
        utility_omitted=useful.reason if isinstance(useful, Omission) else None,
        risks=_risks(truth, made, unseen),
        inference_by_column={},
        samplings=of_fidelity(QUICK, max(truth.rows, made.rows)),
        seconds=time.monotonic() - started,
    )


def _scores(comparison: Comparison, ceiling: Comparison | None) -> list[Score]:
    return [
        _score(metric, comparison, ceiling)
        if metric in QUICK
        else Score(metric=metric.name, value=None, ceiling=None, omitted=LEFT_OUT)
        for metric in FIDELITY
    ]


def _score(metric: FidelityMetric, comparison: Comparison, ceiling: Comparison | None) -> Score:
    def measured(tables: Comparison) -> float | None:
        return metric.measure(tables if metric.rows is None else tables.limited(metric.rows))

    value = measured(comparison)
    real_vs_real = None if ceiling is None else measured(ceiling)
    omitted = metric.absent if value is None else None
    return Score(metric=metric.name, value=value, ceiling=real_vs_real, omitted=omitted)


def _utility(real: Table, synthetic: Table, unseen: Table | None) -> UtilityView | Omission:
    if real.schema.target not in real.schema.discrete:
        return Omission("needs a categorical or boolean target; name one under 'target' in the schema")
    if unseen is None:
        return Omission(NO_TEST_ROWS)
    rng, size = np.random.default_rng(0), min(real.rows, synthetic.rows)
    train, made = real.sample(size, rng), synthetic.sample(size, rng)
    on_synthetic = utility(made, unseen, real.schema, 0, CLASSIFIERS, fitted_on=train)
    on_real = utility(train, unseen, real.schema, 0, CLASSIFIERS, fitted_on=train)
    views = {name: ClassifierView(synthetic=on_synthetic[name], real=on_real[name]) for name in CLASSIFIERS}
    mean = ClassifierView(synthetic=mean_scores(on_synthetic, CLASSIFIERS), real=mean_scores(on_real, CLASSIFIERS))
    return UtilityView(
        target=discrete_target(real.schema),
        train_rows=size,
        test_rows=unseen.rows,
        tested_on_unseen=True,
        classifiers=views,
        means={"all": mean},
    )


def _risks(real: Table, synthetic: Table, unseen: Table | None) -> list[Risk]:
    return [
        _copies(real, synthetic, unseen)
        if metric.name == "copies"
        else Risk(metric=metric.name, value=None, weak_evidence=metric.name == WEAK, omitted=LEFT_OUT)
        for metric in PRIVACY
    ]


def _copies(real: Table, synthetic: Table, unseen: Table | None) -> Risk:
    found = copies(real, synthetic, real.schema, holdout=unseen)
    return Risk(metric="copies", value=found.share, null=found.null_share, flagged=found.flagged)
