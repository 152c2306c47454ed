"""What noisy tables say of pairs of columns once the noise is taken out of them.

One table of 400 cells may be all noise, cell by cell, and still show a relation, for what columns have to do with each
other has few directions: education matters as more or less of it, whichever column it is held against. So directions of
a column are found in all tables that it is in (the eigenvectors of their cross products beyond what noise gives), a
table's interaction is turned into these directions, and every component is shrunk by what its two directions promise.
How much in all is found by likelihood, table by table.

A table is looked at twice: as what it has beyond independent columns, and as what it has beyond the fitted model. A
mean of both has less error than either (docs/decisions/0012-tables-as-they-are.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from synth.counting.estimates import Measurement
from synth.encoding.contingency import Clique
from synth.encoding.scales import Floats

Mask = npt.NDArray[np.bool_]

FACTORS = 10.0 ** np.arange(-5.0, 5.0, 0.25)  # of a table's prior variance: the candidates
GAIN = 1.0  # of twice the log-likelihood, below which a table shows nothing
FAINTEST = 0.02  # of what was expected in a cell: nothing becomes impossible by noise
FITTINGS = 30  # of a table to its margins
PRICE = 1.5  # of a component whose directions the table helped to find, in components


def relations(
    pairs: Mapping[Clique, Measurement],
    modelled: Mapping[Clique, Floats],
    possible: Mapping[Clique, Mask],
    is_held: Callable[[Clique], bool],
) -> dict[Clique, Floats]:
    """The distribution over every pair's table, with the model's margins. `modelled`: the same by a fitted model;
    `possible`: False where forbidden; `is_held`: whether the model was fitted to this pair."""
    rows = max(float(np.mean([table.counts.sum() for table in pairs.values()])), 1.0)
    independent = {
        pair: np.outer(table.sum(axis=1), table.sum(axis=0)) * possible.get(pair, True)
        for pair, table in modelled.items()
    }
    alone, beside = _Seen(pairs, independent, rows), _Seen(pairs, modelled, rows)
    found = {}
    for pair, table in pairs.items():
        margins = modelled[pair].sum(axis=1), modelled[pair].sum(axis=0)
        first, second = alone.estimate(pair, margins), beside.estimate(pair, margins)
        weight = 0.5 if is_held(pair) else _weight(first, second, table, rows)
        found[pair] = weight * first.shares + (1 - weight) * second.shares
    return found


@dataclass(frozen=True)
class _Estimate:
    shares: Floats
    components: float  # of the table's noise that are in it


class _Seen:
    """What tables have beyond an expected distribution, in units of their noise, and the directions of every column."""

    def __init__(self, tables: Mapping[Clique, Measurement], expected: Mapping[Clique, Floats], rows: float) -> None:
        self.expected, self.rows = expected, rows
        self.noise = {pair: float(np.sqrt(table.variance.mean())) for pair, table in tables.items()}
        self.beyond = {
            pair: _centred(table.counts - rows * expected[pair]) / self.noise[pair] for pair, table in tables.items()
        }
        sides: dict[int, list[Floats]] = {}  # per column, all tables that it is in, a line for each of its bins
        for (first, second), beyond in self.beyond.items():
            sides.setdefault(first, []).append(beyond)
            sides.setdefault(second, []).append(beyond.T)
        self.directions = {column: _directions(tables) for column, tables in sides.items()}

    def estimate(self, pair: Clique, margins: tuple[Floats, Floats]) -> _Estimate:
        """The table with its noise taken out."""
        (first, rising), (second, falling) = (self.directions[column] for column in pair)
        parts = first.T @ self.beyond[pair] @ second
        kept = _shrinkage(parts, np.outer(rising, falling))
        change = self.noise[pair] / self.rows * (first @ (kept * parts) @ second.T)
        return _Estimate(_with_margins(self.expected[pair], change, margins), PRICE * float(kept.sum()))


def _directions(tables: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Orthonormal, as columns of a matrix, and the sum of squares along each beyond the most that noise gives."""
    squares, directions = np.linalg.eigh(sum(table @ table.T for table in tables))
    contrasts = sum(table.shape[1] - 1 for table in tables)
    most = (sqrt(contrasts) + sqrt(len(directions))) ** 2  # Marchenko and Pastur
    return directions, np.maximum(squares - most, 0.0)


def _shrinkage(parts: Floats, promise: Floats) -> Floats:
    """Factors for components of noise 1 whose prior variance is `promise` times the likeliest of all factors."""
    factors = np.zeros_like(parts)
    asked = promise > 0
    if asked.any():
        squares, promised = parts[asked] ** 2, promise[asked] / promise.max()
        prior = FACTORS[:, None] * promised
        surprise = (np.log1p(prior) + squares / (1 + prior)).sum(axis=1)  # twice the negative log-likelihood
        best = int(np.argmin(surprise))
        if surprise[best] < squares.sum() - GAIN:
            factors[asked] = prior[best] / (1 + prior[best])
    return factors


def _weight(first: _Estimate, second: _Estimate, table: Measurement, rows: float) -> float:
    """Of the first, such that the mean has the least error as Stein estimates it: the squared distance to what was
    counted, and twice the noise that an estimate has taken over."""
    variance = float(table.variance.mean())
    apart = rows * (first.shares - second.shares)
    if (length := float((apart**2).sum()) / variance) <= 0:
        return 0.5
    along = float(((table.counts - rows * second.shares) * apart).sum()) / variance
    return min(max((along - (first.components - second.components)) / length, 0.0), 1.0)


def _with_margins(base: Floats, change: Floats, margins: tuple[Floats, Floats]) -> Floats:
    """A distribution with these margins, as near to `base + change` as their ratios allow."""
    found = np.where(base > 0, np.maximum(base + change, FAINTEST * base), 0.0)
    for _ in range(FITTINGS):
        for axis, margin in enumerate(margins):
            held = found.sum(axis=1 - axis)
            factor = np.divide(margin, held, out=np.zeros_like(margin), where=held > 0)
            found = found * np.expand_dims(factor, 1 - axis)
    total = found.sum()
    return found / total if total > 0 else base


def _centred(table: Floats) -> Floats:
    centred: Floats = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    return centred
