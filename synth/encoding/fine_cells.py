"""Numeric columns counted twice: in fine cells, which show heaps, and in groups of them, which show the shape.

One fine histogram would do for heaps, but a range that it cuts into a hundred cells has ten times the noise of a cell;
one coarse histogram smears a value that a third of the rows have over its neighbours. So both are released, at the
price of one histogram more for such a column, and made consistent: the average of a group's own count and the sum of
its cells, weighted by precision (Hay et al., VLDB 2010), is what its cells must add up to.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from synth.encoding.cells import Cells
from synth.encoding.cuts import Ints, fine_cut, measure
from synth.encoding.denoising import denoise_groups
from synth.encoding.round_numbers import round_units
from synth.encoding.scales import Floats
from synth.encoding.weekdays import WEEK, joined, weekdays, with_week
from synth.schema import Datetime

WIDE = 4  # times as many values as groups, from which on values are grouped


class FineCells(Cells):
    """`groups` has, for every column counted twice, the group of each cell; a missing cell is a group."""

    def __init__(self, coarse: Cells, most_groups: int | None) -> None:
        """No more than `most_groups` groups a column; None: nothing is counted twice, because nothing is noisy."""
        self.schema, self.scales, self.old, self.coarse = coarse.schema, coarse.scales, coarse.old, coarse
        self._positions = {
            name: fine_cut(scale, coarse._positions[name], coarse.is_curved(name))
            for name, scale in self.scales.items()
        }
        self._lay_out()
        found = {} if most_groups is None else {name: self._grouped(name, most_groups) for name in self.scales}
        self.groups = {name: group for name, group in found.items() if group[-1] + 1 < len(group)}
        self.weeks = {} if most_groups is None else self._weeks()

    @property
    def released_size(self) -> int:
        return self.size + sum(int(group[-1]) + 1 for group in self.groups.values()) + WEEK * len(self.weeks)

    @property
    def counted_again(self) -> int:
        """Histograms beyond one a column: groups and weeks."""
        return len(self.groups) + len(self.weeks)

    def released(self, counts: Ints) -> Ints:
        """The counts of all cells, then those of the weeks, then those of the groups."""
        by_name = {name: counts[part] for name, part in self.slices.items()}
        weeks = [np.bincount(of, by_name[name][: len(of)], minlength=WEEK) for name, of in self.weeks.items()]
        sums = [np.bincount(group, weights=by_name[name]) for name, group in self.groups.items()]
        return np.concatenate([counts, *weeks, *sums]).astype(np.int64)

    def consistent(self, released: npt.NDArray[np.generic]) -> Ints:
        """Counts of all cells that make the best of all histograms."""
        counts, start = released[: self.size].astype(np.float64), self.size
        for name, of in self.weeks.items():
            dated = slice(self.slices[name].start, self.slices[name].start + len(of))
            counts[dated] = joined(counts[dated], released[start : start + WEEK].astype(np.float64), of)
            start += WEEK
        for name, group in self.groups.items():
            cells = counts[self.slices[name]]
            own = released[start : start + int(group[-1]) + 1].astype(np.float64)
            width, sums = np.bincount(group), np.bincount(group, weights=cells)
            counts[self.slices[name]] = cells + ((own - sums) / (width + 1))[group]
            start += len(own)
        return np.rint(counts).astype(np.int64)

    def to_coarse(self, counts: Ints, sigma: float) -> Ints:
        """Counts of the coarse cells. Where a group is larger than such a cell, its share is the denoised one: the sum
        of the fine cells in it would have more noise than a count."""
        found = np.zeros(self.coarse.size)
        by_name = self.split(counts)
        rows = self._rows(by_name)
        for name, cells in by_name.items():
            of = self._coarse_of(name) if name in self.scales else np.arange(len(cells))
            if name in self.groups and self.groups[name][-1] < of[-1]:
                cells = self._probabilities(name, cells, sigma, rows) * rows
            found[self.coarse.slices[name]] = np.bincount(of, weights=cells)
        return np.rint(found).astype(np.int64)

    def units(self, name: str) -> Ints:
        """Groups. A bin that ends within one is as noisy as the sum of its cells there: on Adult the bins of the final
        weight had a standard deviation of 230 to 245 instead of 92 to 97 with undivided cells."""
        return self.groups[name] if name in self.groups else super().units(name)

    def variances(self, name: str, of: Ints, variance: float) -> Floats:
        """j of a group's k cells have j (1 - j / (k + 1)) times the variance of a count."""
        if name not in self.groups:
            return super().variances(name, of, variance)
        group = self.groups[name]
        inside = np.zeros((int(of.max()) + 1, int(group[-1]) + 1))
        np.add.at(inside, (of, group), 1.0)
        found: Floats = variance * (inside * (1 - inside / (np.bincount(group) + 1))).sum(axis=1)
        return found

    def _present(self, name: str, counts: Floats, sigma: float, rows: float) -> Floats:
        if name not in self.groups or sigma == 0:
            return super()._present(name, counts, sigma, rows)
        widths = measure(self.scales[name], self._positions[name], self.is_curved(name))
        units = round_units(self.scales[name], self._positions[name]) if self.is_curved(name) else []
        found = denoise_groups(counts, self.groups[name][: len(counts)], widths, sigma, rows, units)
        return with_week(found, counts, self.weeks[name], sigma, rows) if name in self.weeks else found

    def _coarse_of(self, name: str) -> Ints:
        """The coarse cell of every cell."""
        found = np.searchsorted(self.coarse._positions[name], self._positions[name][:-1], side="right") - 1
        return np.append(found, [found[-1] + 1] * int(self.schema.numeric[name].missing)).astype(np.int64)

    def _weeks(self) -> dict[str, Ints]:
        """Of every column of dates that is grouped: where each day has a count that says much, the week is in it."""
        dates = {name: column for name, column in self.schema.numeric.items() if isinstance(column, Datetime)}
        found = {
            name: weekdays(column, self.scales[name], self._positions[name])
            for name, column in dates.items()
            if name in self.groups
        }
        return {name: of for name, of in found.items() if of is not None}

    def _grouped(self, name: str, most: int) -> Ints:
        of, ordered = self._coarse_of(name), self._ordered(name)
        coarse = int(of[ordered - 1]) + 1
        few = WIDE * most if coarse == ordered else most  # cells of one value each say much by themselves
        group = of if coarse <= few else of * most // coarse
        group[ordered:] = group[ordered - 1] + 1
        return group
