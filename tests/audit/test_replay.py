"""Every mechanism on neighbouring tables, its noise frozen: nothing differs but under noise, and there within its cost.

All checks here are exact: they have no false alarms.
"""

from __future__ import annotations

import pytest

from synth.audit.canaries import extreme_rows
from synth.audit.replay import Neighbours, Replay, replay
from tests.audit.federations import FAMILY_NAMES, small_run, statistics_subject, training_subject

everyone = pytest.mark.parametrize("family", FAMILY_NAMES)
corners = pytest.mark.parametrize("corner", range(3), ids=["lowest", "highest", "missing"])


def replayed(family: str, corner: int, joins: bool = True, rows: int = 60) -> list[Replay]:
    world = small_run(family)
    subjects = [statistics_subject(world.plan, world.asks), training_subject(world.plan, world.asks)]
    data = next(iter(world.data.values())).take(slice(0, rows))
    neighbours = Neighbours(data, extreme_rows(world.plan.table)[corner], joins)
    return [replay(subject, neighbours) for subject in subjects]


@everyone
@corners
def test_a_worst_case_row_changes_nothing_but_values_under_noise(family: str, corner: int) -> None:
    for found in replayed(family, corner):
        assert found.violations == []
        assert found.measured


@everyone
def test_the_worst_case_rows_use_the_allowed_sensitivity(family: str) -> None:
    """Else a missing clip would pass unnoticed."""
    for number in (0, 1):
        assert max(replayed(family, corner)[number].tightness for corner in range(3)) > 0.99


@everyone
def test_a_row_that_sampling_leaves_out_changes_nothing(family: str) -> None:
    for found in replayed(family, 1, joins=False):
        assert found.violations == []


@everyone
def test_a_party_with_a_single_row(family: str) -> None:
    for found in replayed(family, 2, rows=1):
        assert found.violations == []
