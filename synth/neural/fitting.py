"""Fitting drawn rows to the released histograms: raking, choosing, moving numbers. All of it is post-processing."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from synth.encoding.cells import Cells
from synth.encoding.records import Records
from synth.encoding.scales import Floats

RAKING_ROUNDS = 20
QUANTILES = 1 << 16


def raked(weights: Floats, labels: Mapping[str, npt.NDArray[np.int64]], shares: Mapping[str, Floats]) -> Floats:
    """Weights nearest to the given ones under which every column has the wanted shares (iterative proportional
    fitting); labels that no candidate has cannot be had."""
    weights = weights / weights.sum()
    for _ in range(RAKING_ROUNDS):
        for column, codes in labels.items():
            held = np.bincount(codes, weights, minlength=len(shares[column]))
            wanted = np.where(held > 0, shares[column], 0.0)
            factors = np.divide(wanted, held, out=np.zeros_like(held), where=held > 0)
            weights = weights * factors[codes]
        weights = weights / weights.sum()
    return weights


def chosen(weights: Floats, count: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """`count` positions, each as often as its weight says to within one (systematic sampling), in random order."""
    order = rng.permutation(len(weights))
    cumulative = np.cumsum(weights[order])
    marks = (np.arange(count) + rng.random()) / count * cumulative[-1]
    found = np.minimum(np.searchsorted(cumulative, marks), len(weights) - 1)
    return rng.permutation(order[found])


def fit_numbers(
    records: Records, reference: Records, cells: Cells, probabilities: Mapping[str, Floats], rng: np.random.Generator
) -> Records:
    """Move each number, keeping the order, to the released histogram's value at the place it has in `reference`."""
    columns = dict(records.columns)
    for name in cells.scales:
        values, known = columns[name].astype(np.float64), np.sort(_present(reference.columns[name]))
        present = ~np.isnan(values)
        if len(known) == 0 or not present.any():
            continue
        below, upto = (np.searchsorted(known, values[present], side=side) for side in ("left", "right"))
        place = (below + rng.random(len(below)) * (upto - below)) / len(known)
        quantiles = cells.spread(name, probabilities[name], QUANTILES)
        values[present] = quantiles[np.minimum((place * QUANTILES).astype(np.int64), QUANTILES - 1)]
        columns[name] = values
    return Records(columns)


def _present(values: npt.NDArray[np.generic]) -> Floats:
    numbers = values.astype(np.float64)
    return numbers[~np.isnan(numbers)]
