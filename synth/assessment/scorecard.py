"""The classifier that usefulness is measured with: logistic regression on binned columns, as a table of points.

It is trained on the synthetic table, by the aggregator, and travels as weights over the public cells: a row's score for
a class is the sum of the weights of the cells it lies in. So a party needs no library and no random numbers to apply
it, and whatever weights it is sent, each of its rows falls into exactly one bucket.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synth.encoding.bins import BinLimits, Bins, refine
from synth.encoding.cells import Cells
from synth.encoding.records import Records
from synth.encoding.scales import Floats

BUCKETS = 12  # of the score of a class: more are noisier, fewer blunt the curve (Adult: area 0.002 too small)
LIMITS = BinLimits(numeric=20, discrete=64, rows=20.0, label_rows=5.0)  # of the scorecard's own bins
DECIMALS = 3  # of a weight; finer ones change no score that matters
ABSENT = -30.0  # the points of a class that the synthetic table does not have
HEAVIEST = 1e3  # no honest weight is near

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Scorecard:
    weights: Floats  # (classes, cells); 0 in the target's own cells
    edges: Floats  # (judged classes, BUCKETS - 1), rising: where the buckets of a class's probability part

    def probabilities(self, cells: Cells, rows: Records, target: str) -> Floats:
        """(rows, classes)"""
        points = np.zeros((len(rows), len(self.weights)))
        for name, index in cells.index(rows).items():
            if name != target:
                points += self.weights[:, cells.slices[name]].T[index]
        odds = np.exp(points - points.max(axis=1, keepdims=True))
        shares: Floats = odds / odds.sum(axis=1, keepdims=True)
        return shares

    def buckets(self, probabilities: Floats, judged: list[int]) -> list[Ints]:
        """The bucket of every row, for each judged class."""
        found = zip(self.edges, judged, strict=True)
        return [np.searchsorted(edges, probabilities[:, each], side="right") for edges, each in found]


def train(cells: Cells, rows: Records, target: str, classes: int, judged: list[int]) -> Scorecard:
    """The scorecard of a table, with buckets that its classes fill evenly."""
    labels = rows.columns[target].astype(np.int64)
    weights = np.round(_weights(cells, rows, target, labels, classes), DECIMALS)
    card = Scorecard(weights, np.zeros((len(judged), BUCKETS - 1)))
    probabilities = card.probabilities(cells, rows, target)
    edges = [_even(probabilities[:, each], labels == each) for each in judged]
    return Scorecard(weights, np.array(edges))


def _weights(cells: Cells, rows: Records, target: str, labels: Ints, classes: int) -> Floats:
    weights = np.zeros((classes, cells.size))
    present = np.unique(labels)
    if len(present) < 2:
        return weights  # nothing can be learnt from one class; the scorecard knows nothing
    bins = refine(cells, cells.count(rows), 0.0, LIMITS)
    names = [name for name in cells.slices if name != target]
    coefficients, constants = _regression(bins, rows, names, labels)
    start = 0
    for name in names:
        stop = start + bins.size(name)
        weights[present, cells.slices[name]] = coefficients[:, start:stop][:, bins.of(name)]
        start = stop
    first = cells.slices[names[0]]
    absent = np.setdiff1d(np.arange(classes), present)
    weights[present, first] += constants[:, None]  # every row lies in one cell of the first column
    weights[absent, first] = ABSENT
    return weights


def _regression(bins: Bins, rows: Records, names: list[str], labels: Ints) -> tuple[Floats, Floats]:
    """Coefficients (present classes, bins of all named columns) and constants."""
    from scipy.sparse import csr_array  # only the aggregator trains; parties need not wait for these
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    sizes = [bins.size(name) for name in names]
    places = np.stack(bins.index(rows, names), axis=1) + np.concatenate([[0], np.cumsum(sizes[:-1])]).astype(np.int64)
    row_starts = np.arange(len(rows) + 1) * len(names)
    features = csr_array((np.ones(places.size), places.ravel(), row_starts), shape=(len(rows), sum(sizes)))
    model = LogisticRegression(max_iter=300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the last digits move nobody to another bucket
        model.fit(features, labels)
    if len(model.coef_) == 1:  # two classes: the points are the second one's
        return np.concatenate([0 * model.coef_, model.coef_]), np.append(0.0, model.intercept_)
    return model.coef_, model.intercept_


def _even(scores: Floats, positive: NDArray[np.bool_]) -> Floats:
    """Quantiles of the scores, the class and the rest counted alike: the curve bends where both are."""
    counts = np.array([max((~positive).sum(), 1), max(positive.sum(), 1)])
    weights = 1.0 / counts[positive.astype(np.int64)]
    levels = np.arange(1, BUCKETS) / BUCKETS
    return np.quantile(scores, levels, weights=weights, method="inverted_cdf").astype(np.float64)
