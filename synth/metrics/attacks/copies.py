"""Exact copies, and the distance figures DCR and NNDR with the value they would have for an honest table.

A synthetic row that equals a real one is a finding only if synthetic rows equal rows that were never in the data less
often: in a table of few categories everybody has a twin, and a table of only the most usual rows has many. So copies of
real rows are held against copies of as many holdout rows. The test counts different rows, each once, that are found on
one side only: without a leak such a row is as likely on either, however often the table repeats it.

DCR (distance to the closest real record) and NNDR (nearest over second-nearest distance) are *weak evidence*: a table
can pass both and still leak (Ganev and De Cristofaro 2023). They are here because people ask, and never a headline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.neighbors import NearestNeighbors

from synth.errors import InputError
from synth.metrics.attacks.risk import Interval, outnumbers, wilson
from synth.metrics.spaces import LabelCodes, Mixed
from synth.metrics.tables import FloatArray, Rows, Table, table_of
from synth.schema import Schema

REPETITIONS = 10
NO_NUMBER = -1e300  # stands for an empty cell: NaN has many bit patterns
FLAT = 1e-6  # distances below this are rounding errors of equal rows


@dataclass(frozen=True)
class Copies:
    share: Interval  # of synthetic rows that equal one of `compared_rows` real rows
    null_share: Interval | None  # the same of as many holdout rows; None without holdout
    compared_rows: int  # all real rows, or a sample as large as the holdout
    copied_rows: int  # synthetic rows that equal any real row
    flagged: bool


@dataclass(frozen=True)
class Distances:
    dcr_min: float
    dcr_mean: float
    dcr_median: float
    dcr_5th_percentile: float
    nndr_median: float


@dataclass(frozen=True)
class Closeness:
    synthetic: Distances  # from synthetic rows to real rows
    null: Distances | None  # from holdout rows to real rows: what an honest table would show; None without holdout
    dcr_mean_to_holdout: float | None  # from synthetic rows to holdout rows
    share_closer_to_real: float | None  # than to holdout, ties split; 0.5 for an honest table


def copies(real: Rows, synthetic: Rows, schema: Schema, *, holdout: Rows | None = None, seed: int = 0) -> Copies:
    """Rows are equal when all released columns are, at declared precision."""
    members, made = table_of(real, schema, "the real table"), table_of(synthetic, schema, "the synthetic table")
    times = Counter(row_keys(made))
    copied = _repeated(times, set(row_keys(members)))
    if holdout is None:
        return Copies(wilson(copied, made.rows), None, members.rows, copied, flagged=False)
    unseen, rng = table_of(holdout, schema, "the holdout table"), np.random.default_rng(seed)
    size = min(members.rows, unseen.rows)
    ours, theirs = (set(row_keys(table.sample(size, rng))) for table in (members, unseen))
    return Copies(
        share=wilson(_repeated(times, ours), made.rows),
        null_share=wilson(_repeated(times, theirs), made.rows),
        compared_rows=size,
        copied_rows=copied,
        flagged=outnumbers(len(times.keys() & (ours - theirs)), len(times.keys() & (theirs - ours))),
    )


def _repeated(times: Counter[bytes], originals: set[bytes]) -> int:
    return sum(count for key, count in times.items() if key in originals)


def closeness(
    real: Rows,
    synthetic: Rows,
    schema: Schema,
    *,
    holdout: Rows | None = None,
    space: type[Mixed] | type[LabelCodes] = Mixed,
    seed: int = 0,
) -> Closeness:
    """Quadratic in rows: pass samples. `space=LabelCodes` gives the Bayesian network thesis's figures."""
    members, made = table_of(real, schema, "the real table"), table_of(synthetic, schema, "the synthetic table")
    fitted = space.fit(members)
    own, points = fitted.points(members), fitted.points(made)
    if holdout is None:
        return Closeness(_distances(points, own), None, None, None)
    unseen = fitted.points(table_of(holdout, schema, "the holdout table"))
    to_holdout = float(_nearest(points, unseen)[0].mean())
    share = _share_closer(points, own, unseen, np.random.default_rng(seed))
    return Closeness(_distances(points, own), _distances(unseen, own), to_holdout, share)


def row_keys(table: Table) -> Iterator[bytes]:
    """Equal rows have equal keys: the bytes of all codes and numbers."""
    numbers = (np.nan_to_num(values, nan=NO_NUMBER) for values in table.numbers.values())
    stacked = np.column_stack([*(codes.astype(np.float64) for codes in table.codes.values()), *numbers])
    return (row.tobytes() for row in stacked)


def _distances(points: FloatArray, others: FloatArray) -> Distances:
    dcr, nndr = _nearest(points, others)
    low, middle = np.quantile(dcr, [0.05, 0.5])
    return Distances(float(dcr.min()), float(dcr.mean()), float(middle), float(low), float(np.median(nndr)))


def _nearest(points: FloatArray, others: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Distance to the nearest other, and its ratio to the second-nearest (1 where that is 0, too)."""
    if len(others) < 2:
        raise InputError("nearest-neighbour distances need at least two real rows and two holdout rows; give more")
    distances: FloatArray = NearestNeighbors(n_neighbors=2, algorithm="brute").fit(others).kneighbors(points)[0]
    distances = np.where(distances < FLAT, 0.0, distances)
    first, second = distances[:, 0], distances[:, 1]
    return first, np.divide(first, second, out=np.ones_like(first), where=second > 0)


def _share_closer(points: FloatArray, own: FloatArray, unseen: FloatArray, rng: np.random.Generator) -> float:
    """Both sets sampled to the smaller one's size, or the larger would win by size alone; mean of ten.

    NOTE[DIFF]: the thesis bootstraps the real rows; repeated rows make that sample smaller than it looks, and the null
    falls below 0.5."""
    rows = min(len(own), len(unseen))
    shares = []
    for _ in range(REPETITIONS):
        drawn = (others[rng.permutation(len(others))[:rows]] for others in (own, unseen))
        to_real, to_unseen = (_nearest(points, others)[0] for others in drawn)
        shares.append(float((to_real < to_unseen).mean() + (to_real == to_unseen).mean() / 2.0))
    return float(np.mean(shares))
