"""Which pairs are counted again together with the target: those whose table of three columns is worth its noise.

A pair's table by class of the target says what no model of pairs can: how two columns together tell the target. It
costs the same as the pair's own table (one row lies in one cell of either) and holds it as a margin, with the noise of
as many cells as there are classes. What three columns have beyond their pairs is small: on Adult and credit default its
mean square is one to two times the sampling error of the cells, so it is worth counting where the noise of a cell has
no more variance than that. Rows, cells and noise decide, and all three are known before the tables are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from math import prod

from synth.encoding.contingency import Clique

INTERACTION = 2.0  # mean square of what pairs do not say of three columns, in rows per cell


def with_target(
    pairs: Sequence[Clique],
    target: int | None,
    sizes: Sequence[int],
    variance: float,
    rows: float,
    is_countable: Callable[[Clique], bool] = lambda _: True,
) -> list[Clique]:
    """The pairs in order, each with the target where that pays; pairs that such a table holds are left out."""
    widened = [(pair, _widened(pair, target, sizes, variance, rows)) for pair in pairs]
    tables = [wide if is_countable(wide) else pair for pair, wide in widened]
    held = {pair for table in tables if len(table) == 3 for pair in combinations(table, 2)}
    return [table for table in tables if table not in held]


def is_with_target(clique: Clique, target: int | None, pairs: Sequence[Clique]) -> bool:
    """Whether these are the target and two columns that the plan counts with it and with each other."""
    return len(clique) == 3 and target in clique and set(combinations(clique, 2)) <= set(pairs)


def _widened(pair: Clique, target: int | None, sizes: Sequence[int], variance: float, rows: float) -> Clique:
    if target is None or target in pair:
        return pair
    wide = tuple(sorted((*pair, target)))
    return wide if prod(sizes[column] for column in wide) * variance <= INTERACTION * rows else pair
