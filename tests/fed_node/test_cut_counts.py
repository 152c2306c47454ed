"""A party with far more rows than it declares: its counts are cut before their noise, which stays whole."""

from __future__ import annotations

import numpy as np

from synth.counting.party_side import with_noise
from synth.messages.sums import count_limit
from synth.privacy.events import CountNoise
from synth.privacy.noise import seeded_source
from tests.small import plan_of


def test_noise_of_a_count_beyond_its_room_is_not_cut() -> None:
    """Cut after the noise, half of the draws at the limit were equal: less noise than the ledger charges."""
    plan = plan_of({"name": "marginals"}, parties=2)
    event = CountNoise(1, 100.0, trust="local")
    counts = np.full(2000, 10 * plan.largest_count, dtype=np.int64)
    found = with_noise(counts, plan, event, seeded_source(1))
    limit = count_limit(plan)
    assert limit is not None
    assert np.array_equal(found, found.clip(-limit, limit))
    assert 80 < np.var(found) < 250  # all of it, and what the other party's share adds
    assert abs(found.mean() - plan.largest_count) < 2
