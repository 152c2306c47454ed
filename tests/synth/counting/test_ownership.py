"""Whose noise is in which table, where parties hold different columns."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from synth.counting.ownership import countable, sides_of, table_variances
from synth.counting.party_side import with_noise
from synth.encoding.bins import Bins
from synth.grid import grid_of
from synth.privacy.events import CountNoise
from synth.privacy.noise import seeded_source
from synth.privacy.shares import opened_variances, owned_variance, share_of, summed_variance
from tests.small import plan_of
from tests.vertical import AGGREGATOR_DEALS, COLUMNS, TWO, plan_by_columns

PLAN = plan_by_columns(COLUMNS, privacy="none")
EVENT = CountNoise(21, 400.0)
NAMES = list(PLAN.table.released)
PAIRS = list(combinations(range(len(NAMES)), 2))


def test_noise_is_the_owner_s_within_and_everybody_s_across() -> None:
    """What is in the sum, and what is left of it for a party that pools what it knows with the aggregator."""
    plan = plan_by_columns(COLUMNS)
    cells = grid_of(plan).coarse
    bins = Bins(cells, np.concatenate([np.arange(part.stop - part.start) for part in cells.slices.values()]))
    sides = {party.name: sides_of(plan, party.name, bins, NAMES, PAIRS) for party in plan.parties}
    own = np.sum([side.own for side in sides.values() if side], axis=0)
    across = next(iter(sides.values())).across  # type: ignore[union-attr]
    assert ((own == 1) ^ across).all()  # every cell has one owner, or lies across
    zeros = np.zeros(len(across), dtype=np.int64)
    summands = {name: with_noise(zeros, plan, EVENT, seeded_source(1, name), side) for name, side in sides.items()}
    total = np.sum(list(summands.values()), axis=0)
    assert total[~across].var() == pytest.approx(EVENT.variance, rel=0.15)
    assert total[across].var() == pytest.approx(summed_variance(plan, EVENT), rel=0.15)
    for colluder in summands:
        left = (total - summands[colluder])[across]
        assert left.var() == pytest.approx(share_of(plan, EVENT) * 2, rel=0.15)
        assert left.var() > 0.85 * EVENT.variance
        others = ~across & (summands[colluder] == 0)
        assert (total - summands[colluder])[others].var() == pytest.approx(EVENT.variance, rel=0.2)


def test_the_estimates_know_how_noisy_each_table_is() -> None:
    plan = plan_by_columns(COLUMNS)
    within, over = NAMES.index("sex"), NAMES.index("age")
    smoker = NAMES.index("smoker")
    found = table_variances(plan, NAMES, [tuple(sorted((within, smoker))), tuple(sorted((within, over)))], 600.0)
    assert found == [400.0, 600.0]
    assert owned_variance(plan, EVENT) == 400.0
    assert opened_variances(plan, [EVENT], 3, "training") == [400.0, 600.0]
    assert opened_variances(plan, [EVENT], 3, "statistics") == [400.0]
    rows = plan_of({"name": "marginals"})
    assert opened_variances(rows, [EVENT], 3, "training") == [600.0]
    assert table_variances(rows, NAMES, [(0, 1)], 600.0) == [600.0]


def test_three_columns_are_counted_only_at_home() -> None:
    plan = plan_by_columns(TWO, privacy="none", **AGGREGATOR_DEALS)
    place = {name: number for number, name in enumerate(NAMES)}
    home = tuple(sorted(place[name] for name in ("age", "dose", "ward")))
    away = tuple(sorted(place[name] for name in ("age", "dose", "died")))
    assert countable(plan, NAMES, home)
    assert not countable(plan, NAMES, away)
    assert countable(plan_of({"name": "marginals"}), NAMES, away)
