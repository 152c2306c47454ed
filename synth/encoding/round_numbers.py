"""Round numbers in a column of many values: what no single count shows, all of them together do.

A credit limit is a multiple of 10,000 and a weight one of 5, but each such value may hold fewer rows than the noise of
a count. Their sum does not hide: where the cells of all multiples of a unit hold more than their share of their groups,
beyond what noise explains, every group gives that share of its rows to the multiples in it. The unit that shows most
clearly comes first, and others for what it leaves unexplained. All this reads released counts only.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from synth.encoding.cuts import Ints
from synth.encoding.scales import Floats, Scale

Flags = npt.NDArray[np.bool_]
FEWEST = 4  # multiples of a unit that have a cell to themselves
MOST = 0.99  # of a group's rows that multiples may get: no value that was declared becomes impossible
CLEAR = 4.5  # standard deviations by which the share of round numbers must differ from none; several units are tried


def round_units(scale: Scale, starts: Ints) -> list[Flags]:
    """For 5, 10, 50, 100, … steps: the cells that are one multiple of it and nothing else. Finest unit first, and none
    that says the same as a finer one."""
    first = round(scale.lowest / scale.step)
    alone, value = np.diff(starts) == 1, first + starts[:-1]
    found: list[Flags] = []
    unit = 5
    while unit * FEWEST <= scale.points:
        cells = alone & (value % unit == 0)
        if FEWEST <= cells.sum() < len(cells) and not (found and np.array_equal(found[-1], cells)):
            found.append(cells)
        unit *= 2 if str(unit).startswith("5") else 5
    return found


def with_round_numbers(
    counts: Floats, group: Ints, widths: Floats, mass: Floats, sigma: float, units: list[Flags]
) -> Floats:
    """How each group spreads over its cells: by `widths`, and towards the multiples of every unit that shows. `mass` is
    what the groups hold; `counts` are consistent with the counts of the groups, which have as much noise as a cell."""
    shares = widths / np.bincount(group, weights=widths)[group]
    for _ in units:
        pulls = [_pull(unit, counts, group, shares, mass, sigma) for unit in units]
        clearest = int(np.argmax([clarity for _, clarity in pulls]))
        part, clarity = pulls[clearest]
        if clarity <= CLEAR:
            break
        at_multiples = shares * units[clearest]
        usual = np.bincount(group, weights=at_multiples)[group]
        pulled = np.divide(at_multiples, usual, out=shares.copy(), where=usual > 0)
        shares = (1 - part) * shares + part * pulled
    return shares


def _pull(unit: Flags, counts: Floats, group: Ints, shares: Floats, mass: Floats, sigma: float) -> tuple[float, float]:
    """Which part of all rows is at multiples of a unit beyond the share that they have, and by how many standard
    deviations that differs from none."""
    cells, multiples = np.bincount(group), np.bincount(group, weights=unit)
    usual = np.bincount(group, weights=shares * unit)
    beyond = np.bincount(group, weights=counts * unit) - np.bincount(group, weights=counts) * usual
    doubt = multiples * (1 - multiples / (cells + 1)) + usual**2  # of `beyond`, in variances of a count
    room = mass * (1 - usual)  # what would be beyond if all rows were at multiples
    known = (multiples > 0) & (room > 0)
    precision = float((room[known] ** 2 / doubt[known]).sum())
    if precision == 0:
        return 0.0, 0.0
    part = float((room[known] * beyond[known] / doubt[known]).sum()) / precision
    return min(part, MOST), part * float(np.sqrt(precision)) / sigma
