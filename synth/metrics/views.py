"""What a report draws: one overlay per column, one heat map per association."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from synth.metrics.comparison import Comparison
from synth.metrics.evaluation import ColumnView, MatrixView, PairsView, Summary
from synth.metrics.fidelity import jsd_by_column, shares, tvd_by_column, tvd_by_pair, wd_by_column
from synth.metrics.fidelity_columns import hellinger_by_column, ks_by_column
from synth.metrics.fidelity_pairs import Associations
from synth.metrics.tables import FloatArray, Table

OVERLAY_BINS = 40


def column_views(comparison: Comparison) -> list[ColumnView]:
    real, synthetic, schema = comparison.real, comparison.synthetic, comparison.schema
    figures: dict[str, Mapping[str, float | None]] = {
        "tvd": tvd_by_column(real, synthetic, schema),
        "hellinger": hellinger_by_column(real, synthetic, schema),
        "jsd": jsd_by_column(real, synthetic, schema),
        "wd": wd_by_column(real, synthetic, schema),
        "ks": ks_by_column(real, synthetic, schema),
    }
    views = []
    for name in schema.released:
        own = {figure: by_column[name] for figure, by_column in figures.items() if name in by_column}
        view = _discrete if name in real.codes else _numeric
        views.append(view(real, synthetic, name, own))
    return views


def pairs_view(comparison: Comparison) -> PairsView | None:
    names = comparison.real.columns
    if len(names) < 2:
        return None
    left, right = comparison.associations
    tvd = np.zeros((len(names), len(names)))
    for (first, second), distance in tvd_by_pair(comparison.real, comparison.synthetic, comparison.schema).items():
        i, j = names.index(first), names.index(second)
        tvd[i, j] = tvd[j, i] = distance
    others = [
        MatrixView(name=name, rows=rows, columns=columns, real=real.tolist(), synthetic=synthetic.tolist())
        for name, rows, columns, real, synthetic in (
            ("pearson", left.numeric, left.numeric, left.pearson, right.pearson),
            ("cramers_v", left.discrete, left.discrete, left.cramers_v, right.cramers_v),
            ("theils_u", left.discrete, left.discrete, left.theils_u, right.theils_u),
            ("correlation_ratio", left.numeric, left.discrete, left.correlation_ratio, right.correlation_ratio),
        )
        if rows and columns
    ]
    mixed = MatrixView(
        name="mixed",
        rows=names,
        columns=names,
        real=_in_schema_order(left, names).tolist(),
        synthetic=_in_schema_order(right, names).tolist(),
    )
    return PairsView(mixed=mixed, others=others, tvd=tvd.tolist())


def _in_schema_order(matrices: Associations, names: list[str]) -> FloatArray:
    present = [*matrices.numeric, *matrices.discrete]
    order = [present.index(name) for name in names]
    return matrices.mixed()[np.ix_(order, order)]


def _discrete(real: Table, synthetic: Table, name: str, figures: dict[str, float | None]) -> ColumnView:
    left, right = shares(real, name), shares(synthetic, name)
    column = real.schema.discrete[name]
    return ColumnView(
        name=name,
        kind=column.kind,
        labels=column.labels,
        edges=None,
        real=left[:-1].tolist(),
        synthetic=right[:-1].tolist(),
        real_empty=float(left[-1]),
        synthetic_empty=float(right[-1]),
        figures=figures,
        real_summary=None,
        synthetic_summary=None,
    )


def _numeric(real: Table, synthetic: Table, name: str, figures: dict[str, float | None]) -> ColumnView:
    """Bins span the values of both tables: a declared domain may be far wider than anything in it."""
    left, right = real.filled(name), synthetic.filled(name)
    pooled = np.concatenate([left, right])
    edges = np.histogram_bin_edges(pooled if len(pooled) else np.array([0.0]), OVERLAY_BINS)
    return ColumnView(
        name=name,
        kind=real.schema.numeric[name].kind,
        labels=None,
        edges=edges.tolist(),
        real=(np.histogram(left, edges)[0] / real.rows).tolist(),
        synthetic=(np.histogram(right, edges)[0] / synthetic.rows).tolist(),
        real_empty=1.0 - len(left) / real.rows,
        synthetic_empty=1.0 - len(right) / synthetic.rows,
        figures=figures,
        real_summary=_summary(left),
        synthetic_summary=_summary(right),
    )


def _summary(values: FloatArray) -> Summary | None:
    if len(values) == 0:
        return None
    low, median, high = np.quantile(values, [0.0, 0.5, 1.0])
    return Summary(mean=values.mean(), deviation=values.std(), low=low, median=median, high=high)
