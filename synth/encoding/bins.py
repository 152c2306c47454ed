"""Bins for counting columns together, merged from the public cells by what the noisy histogram says about them.

A table of two columns has a cell for every pair of bins, and every cell carries noise, so a bin should hold more rows
than the noise of one count: empty and sparse stretches are merged, dense ones stay as fine as the cells are, and a
value that piles up (no capital gain, forty hours) keeps a bin to itself. Rare labels share one bin. All this reads only
the released histogram, so it is free; and what merging hides, the histogram gives back when values are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth.encoding.cells import Cells
from synth.encoding.contingency import Ints
from synth.encoding.records import Records, Values
from synth.encoding.scales import Floats
from synth.errors import ProtocolError

FEW, CHANCE = 64, 3.0  # cells of a bin whose roughness is believed at once; standard deviations that more must show
FAINTEST = 0.02  # of the mean label in its bin: a declared label stays possible however small its noisy count


@dataclass(frozen=True)
class BinLimits:
    """How coarse bins must be."""

    numeric: int  # most bins of a numeric column
    discrete: int  # most bins of a discrete column
    rows: float  # fewest rows of a numeric column's bin, as far as the histogram can tell
    label_rows: float  # fewest rows of a label that has a bin to itself


@dataclass(frozen=True, eq=False)
class Bins:
    """The bin, within its column, of every cell of the public grid."""

    cells: Cells
    of_cell: Ints  # (cells.size,)

    def __post_init__(self) -> None:
        if self.of_cell.shape != (self.cells.size,) or self.of_cell.dtype.kind != "i":
            raise ProtocolError("bins do not fit the plan's grid; the aggregator runs another version")
        for name, part in self.cells.slices.items():
            if self.of_cell[part].min() < 0 or self.of_cell[part].max() >= part.stop - part.start:
                raise ProtocolError(f"the bins of column '{name}' are no bins of its cells; refuse the run")

    def of(self, name: str) -> Ints:
        return self.of_cell[self.cells.slices[name]]

    def size(self, name: str) -> int:
        return int(self.of(name).max()) + 1

    def index(self, records: Records, names: list[str]) -> list[Ints]:
        """The bin of every row in the named columns."""
        cells = self.cells.index(records)
        return [self.of(name)[cells[name]] for name in names]

    def fold(self, name: str, per_cell: Floats) -> Floats:
        """Sums over the cells of each bin of a column."""
        return np.bincount(self.of(name), weights=per_cell, minlength=self.size(name)).astype(np.float64)

    def draw(
        self, name: str, bins: Ints, weights: Floats, rng: np.random.Generator, ranks: Floats | None = None
    ) -> Values:
        """A value for every row from the cells of its bin, by `weights` over the column's cells.

        Draws are stratified over the bin, so that the column's distribution function is the weights' own. Within the
        bin, values rise with `ranks`; without them, rows get them by luck."""
        luck = rng.random(len(bins)) if ranks is None else ranks
        values: Values = np.empty(len(bins), dtype=np.int64)
        if name in self.cells.scales:
            values = np.empty(len(bins), dtype=np.float64)
        for number in np.unique(bins):
            rows = np.flatnonzero(bins == number)
            inside = np.where(self.of(name) == number, weights, 0.0)
            if inside.sum() <= 0:
                inside = (self.of(name) == number).astype(np.float64)
            values[rows[np.argsort(luck[rows])]] = self._spread(name, inside, len(rows))
        return values

    def _spread(self, name: str, weights: Floats, rows: int) -> Values:
        if name not in self.cells.scales:
            levels = (np.arange(rows) + 0.5) / rows
            rising = np.cumsum(weights) / weights.sum()
            return np.minimum(np.searchsorted(rising, levels, side="right"), len(weights) - 1).astype(np.int64)
        if self.cells.schema.numeric[name].missing and not weights[:-1].any():
            return np.full(rows, np.nan).astype(np.float64)
        return self.cells.spread(name, weights, rows)


def refine(cells: Cells, counts: Ints, sigma: float, limits: BinLimits, apart: dict[str, Ints] | None = None) -> Bins:
    """Merge cells until every bin is worth counting. `apart` gives, for some discrete columns, a group to each label;
    labels of different groups never share a bin."""
    of_cell = np.zeros(cells.size, dtype=np.int64)
    shares = cells.probabilities(counts, sigma)
    rows = max(float(counts.sum()) / len(cells.slices), 1.0)
    for name, part in cells.slices.items():
        mass = shares[name] * rows
        if name not in cells.scales:
            groups = (apart or {}).get(name, np.zeros(len(mass), dtype=np.int64))
            of_cell[part] = _merge_labels(mass, limits, groups)
        else:
            missing = int(cells.schema.numeric[name].missing)
            unit = cells.units(name)[: len(mass) - missing]
            found = _merge_stretches(np.bincount(unit, weights=mass[: len(unit)]).astype(np.float64), limits)[unit]
            of_cell[part] = np.append(found, [found.max() + 1] * missing)
    return Bins(cells, of_cell)


def cell_weights(bins: Bins, counts: Ints, sigma: float) -> Floats:
    """How the rows of each bin spread over its cells (all columns; counts, none negative).

    Numbers: James-Stein within each bin, from the denoised histogram towards the noisy counts, by as much as they
    differ more than their noise explains. The denoised histogram alone flattens what is rough, such as hours in
    multiples of five; the noisy counts alone fill empty tails. Labels are as denoised, and none is impossible."""
    cells, weights = bins.cells, np.zeros(bins.cells.size)
    shares = cells.probabilities(counts, sigma)
    for name, noisy in cells.split(counts).items():
        of, prior = bins.of(name), shares[name] * max(noisy.sum(), 0.0)
        width = np.bincount(of)
        if name not in cells.scales:
            faintest = FAINTEST * bins.fold(name, prior) / width if sigma > 0 else np.zeros(len(width))
            weights[cells.slices[name]] = np.maximum(prior, faintest[of])
            continue
        surprise = bins.fold(name, (noisy - prior) ** 2) / width
        by_chance = sigma**2 * (1 + CHANCE * np.sqrt(2 / width) * (width > FEW))
        trust = np.where(surprise > by_chance, 1 - sigma**2 / np.maximum(surprise, 1e-12), 0.0)
        weights[cells.slices[name]] = np.maximum(prior + trust[of] * (noisy - prior), 0.0)
    return weights


def _merge_labels(mass: Floats, limits: BinLimits, groups: Ints) -> Ints:
    """A bin for each common label, and one for all the rare ones of a group (if there are several)."""
    common = mass >= max(
        limits.label_rows, np.sort(mass)[::-1][limits.discrete - 1] if len(mass) > limits.discrete else 0.0
    )
    for group in np.unique(groups):
        rare = np.flatnonzero((groups == group) & ~common)
        if len(rare) == 1:
            common[rare] = True
    key = np.where(common, np.arange(len(mass)), len(mass) + groups)
    return np.unique(key, return_inverse=True)[1].astype(np.int64)


def _merge_stretches(mass: Floats, limits: BinLimits) -> Ints:
    """Neighbouring cells merged: what is heavier than an even share stands alone, the rest is cut into even shares."""
    alone = np.zeros(len(mass), dtype=bool)
    while True:
        left = max(limits.numeric - int(alone.sum()), 1)
        share = max(mass[~alone].sum() / left, limits.rows, 1e-9)
        heavy = ~alone & (mass >= share)
        if not heavy.any() or alone.sum() + heavy.sum() >= limits.numeric:
            break
        alone |= heavy
    starts = np.ones(len(mass), dtype=bool)
    held = 0.0
    for cell in range(1, len(mass)):
        held += mass[cell - 1]
        starts[cell] = alone[cell] or alone[cell - 1] or held + mass[cell] / 2 >= share  # whichever cut is nearer
        held = 0.0 if starts[cell] else held
    return _merge_light(np.cumsum(starts) - 1, mass, limits)


def _merge_light(bins: Ints, mass: Floats, limits: BinLimits) -> Ints:
    """Join the lightest bin to its lighter neighbour until the bins are few and heavy enough."""
    held = list(np.bincount(bins, weights=mass))
    while len(held) > 1 and (min(held) < limits.rows or len(held) > limits.numeric):
        light = int(np.argmin(held))
        beside = [place for place in (light - 1, light + 1) if 0 <= place < len(held)]
        first = min(light, min(beside, key=lambda place: held[place]))
        held[first : first + 2] = [held[first] + held[first + 1]]
        bins = np.where(bins > first, bins - 1, bins)
    return bins.astype(np.int64)
