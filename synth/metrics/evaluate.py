"""Is this synthetic table faithful, useful and safe? All figures at once, each beside what real data would score.

    tables ─► fidelity (against the same figures between two halves of the real rows)
           ─► column overlays, pair matrices
           ─► utility (against models trained on the real rows)
           ─► risks (against people who were not in the data)

Costly figures look at a sample; the result says so. A figure that does not exist for these tables is left out with a
reason. What cannot be read at all raises `InputError`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from synth.errors import InputError
from synth.metrics import samplings
from synth.metrics.comparison import Comparison, halves
from synth.metrics.evaluation import ClassifierView, Evaluation, Score, UtilityView
from synth.metrics.registry import FIDELITY
from synth.metrics.risks import Step, Target, check_attacker, risks
from synth.metrics.strangers import why_no_strangers
from synth.metrics.tables import Rows, Table, table_of
from synth.metrics.utility import (
    ALL_CLASSIFIERS,
    CTGAN_FOUR,
    FINDIFF_FIVE,
    Omission,
    Scores,
    discrete_target,
    mean_scores,
    utility,
)
from synth.metrics.views import column_views, pairs_view
from synth.schema import Schema

Progress = Callable[[str, float], None]  # what comes next, share done
ATTACK_STEPS = 7


def evaluate(
    real: Rows,
    synthetic: Rows,
    schema: Schema,
    holdout: Rows | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    *,
    quasi_identifiers: Sequence[str] | None = None,
    secret: str | None = None,
) -> Evaluation:
    """`real` are the rows the synthesizer was trained on, `holdout` rows of the same population it never saw.
    `quasi_identifiers` and `secret` choose the attribute-disclosure attacker."""
    step = _Steps(progress, total=2 * len(FIDELITY) + 1 + 2 * len(ALL_CLASSIFIERS) + ATTACK_STEPS)
    check_attacker(schema, quasi_identifiers, secret)
    truth, made = table_of(real, schema, "the real table"), table_of(synthetic, schema, "the synthetic table")
    unseen = None if holdout is None else _strangers(table_of(holdout, schema, "the holdout table"), truth, seed)
    unseen_rows = None if unseen is None else unseen.rows
    comparison = Comparison(truth, made, seed)
    with threadpool_limits(limits=1):  # threads that wait for each other cost more than they save at these sizes
        scores = fidelity_scores(comparison, step)
        step("column overlays")
        columns, pairs = column_views(comparison), pairs_view(comparison)
        useful = _utility(truth, made, unseen, seed, step)
        found, secrets = risks(Target(truth, made, unseen, seed), step, keys=quasi_identifiers, secret=secret)
    return Evaluation(
        schema_digest=schema.digest(),
        rows_real=truth.rows,
        rows_synthetic=made.rows,
        rows_holdout=unseen_rows,
        seed=seed,
        scores=scores,
        columns=columns,
        pairs=pairs,
        utility=useful if isinstance(useful, UtilityView) else None,
        utility_omitted=useful.reason if isinstance(useful, Omission) else None,
        risks=found,
        inference_by_column=secrets,
        samplings=samplings.in_words(truth.rows, made.rows, unseen_rows),
        seconds=step.finish(),
    )


def _strangers(holdout: Table, real: Table, seed: int) -> Table:
    """The holdout rows, if they can be people whom the synthesizer never saw."""
    if reason := why_no_strangers(real, holdout, seed):
        raise InputError(reason)
    return holdout


class _Steps:
    """Counts the steps for the progress callback, and the time."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0
        self._started = time.monotonic()

    def __call__(self, what: str) -> None:
        if self._progress is not None:
            self._progress(what, min(1.0, self._done / self._total))
        self._done += 1

    def finish(self) -> float:
        """Seconds since it was made."""
        if self._progress is not None:
            self._progress("done", 1.0)
        return time.monotonic() - self._started


def fidelity_scores(comparison: Comparison, step: Step) -> list[Score]:
    """Every fidelity figure beside the same one between two halves of the real rows."""
    ceiling = halves(comparison.real, comparison.seed)
    measured = _measure(comparison, step)
    real_vs_real = {} if ceiling is None else _measure(ceiling, step)
    return [
        Score(
            metric=metric.name,
            value=measured[metric.name],
            ceiling=real_vs_real.get(metric.name),
            omitted=metric.absent if measured[metric.name] is None else None,
        )
        for metric in FIDELITY
    ]


def _measure(comparison: Comparison, step: Step) -> dict[str, float | None]:
    """Comparisons of one size are shared between metrics, and with them everything they worked out."""
    limited: dict[int | None, Comparison] = {None: comparison}
    values = {}
    for metric in FIDELITY:
        if metric.rows not in limited and metric.rows is not None:
            limited[metric.rows] = comparison.limited(metric.rows)
        step(metric.title)
        values[metric.name] = metric.measure(limited[metric.rows])
    return values


def _utility(real: Table, synthetic: Table, holdout: Table | None, seed: int, step: _Steps) -> UtilityView | Omission:
    try:
        target = discrete_target(real.schema)
    except InputError as reason:
        return Omission(str(reason))
    rng = np.random.default_rng(seed)
    train, test = (real, holdout) if holdout is not None else _split(real, rng)
    size = min(train.rows, synthetic.rows, samplings.TRAINING_ROWS)  # equal, or the larger table would win by its size
    train, made, test = train.sample(size, rng), synthetic.sample(size, rng), test.sample(samplings.TEST_ROWS, rng)
    if min(train.rows, test.rows) == 0:
        return Omission("the real table has too few rows to keep any for testing")
    classifiers = {}
    for name in ALL_CLASSIFIERS:
        step(f"{name} on synthetic rows")
        on_synthetic = utility(made, test, real.schema, seed, [name], fitted_on=train)[name]
        step(f"{name} on real rows")
        on_real = utility(train, test, real.schema, seed, [name], fitted_on=train)[name]
        classifiers[name] = ClassifierView(synthetic=on_synthetic, real=on_real)
    means = {
        group: ClassifierView(synthetic=_mean(classifiers, names, "synthetic"), real=_mean(classifiers, names, "real"))
        for group, names in (("ctgan_four", CTGAN_FOUR), ("findiff_five", FINDIFF_FIVE), ("all", ALL_CLASSIFIERS))
    }
    return UtilityView(
        target=target,
        train_rows=made.rows,
        test_rows=test.rows,
        tested_on_unseen=holdout is not None,
        classifiers=classifiers,
        means=means,
    )


def _mean(classifiers: dict[str, ClassifierView], names: Sequence[str], side: str) -> Scores | Omission:
    return mean_scores({name: getattr(view, side) for name, view in classifiers.items()}, names)


def _split(real: Table, rng: np.random.Generator) -> tuple[Table, Table]:
    """Without holdout a fifth of the real rows is for testing. The synthesizer saw them, so scores are optimistic."""
    order = rng.permutation(real.rows)
    return real.take(order[real.rows // 5 :]), real.take(order[: real.rows // 5])
