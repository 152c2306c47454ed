"""Whose columns a table is made of: the only difference that a plan by columns makes to counting.

A table of one party's columns is counted by that party and carries its noise alone, which nobody else knows. A table
across two parties exists in shares only, so everybody adds a share of its noise. Three columns or more are counted only
where one party holds all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from synth.encoding.bins import Bins
from synth.encoding.contingency import Clique
from synth.plan import Plan

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Sides:
    """Of every cell of some tables, whether it is the party's own, and whether it lies across two parties."""

    own: Mask
    across: Mask


def countable(plan: Plan, names: Sequence[str], clique: Clique) -> bool:
    """Whether anybody can count this table."""
    return plan.partition == "rows" or len(clique) <= 2 or _owner(plan, names, clique) is not None


def sides_of(plan: Plan, party: str, bins: Bins, names: Sequence[str], cliques: Sequence[Clique]) -> Sides | None:
    """None under a plan by rows, where every table is everybody's."""
    if plan.partition == "rows":
        return None
    owners = [_owner(plan, names, clique) for clique in cliques]
    cells = [prod(bins.size(names[column]) for column in clique) for clique in cliques]
    return Sides(
        np.repeat([owner == party for owner in owners], cells), np.repeat([owner is None for owner in owners], cells)
    )


def table_variances(plan: Plan, names: Sequence[str], cliques: Sequence[Clique], across: float) -> list[float]:
    """The noise of every table, from that of one that everybody adds noise to."""
    alone = across if plan.partition == "rows" else across * plan.noisy_parties / len(plan.parties)
    return [across if _owner(plan, names, clique) is None else alone for clique in cliques]


def _owner(plan: Plan, names: Sequence[str], clique: Clique) -> str | None:
    return plan.owner([names[column] for column in clique])
