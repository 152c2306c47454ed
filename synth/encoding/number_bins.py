"""Numbers as bins: where a column is cut so that every bin is worth learning, from the released histogram alone.

A network that guesses a softmax over bins needs no shape for numbers, and a value that piles up keeps a bin to itself.
What a bin hides, the histogram gives back when rows are drawn. A column's cuts are the values at which its bins but the
first begin; with the schema they say everything.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from synth.encoding.bins import BinLimits, Bins, refine
from synth.encoding.cells import Cells
from synth.encoding.contingency import Ints
from synth.encoding.scales import Floats

Cuts = dict[str, Floats]
FEWEST_ROWS, SIGMAS = 20.0, 4.0  # that a bin should hold: rows, and standard deviations of the noise of one count
NO_LIMIT = 1 << 62


def cut(cells: Cells, counts: Ints, sigma: float, most: int) -> Cuts:
    """At most so many bins a numeric column."""
    limits = BinLimits(numeric=most, discrete=NO_LIMIT, rows=max(SIGMAS * sigma, FEWEST_ROWS), label_rows=0.0)
    bins = refine(cells, counts, sigma, limits)
    found = {}
    for name in cells.scales:
        edges = cells.edges(name)
        of = bins.of(name)[: len(edges) - 1]
        found[name] = edges[1:-1][np.diff(of) > 0]
    return found


def as_bins(cells: Cells, cuts: Mapping[str, Floats]) -> Bins:
    """The bin of every cell under these cuts; a label is its own bin, and a missing number the last one."""
    parts = []
    for name, part in cells.slices.items():
        of = np.arange(part.stop - part.start)
        if name in cells.scales:
            middles = (cells.edges(name)[1:] + cells.edges(name)[:-1]) / 2
            of = np.searchsorted(cuts[name], middles)
            of = np.append(of, [len(cuts[name]) + 1] * int(cells.schema.numeric[name].missing))
        parts.append(of)
    return Bins(cells, np.concatenate(parts).astype(np.int64))
