"""Noise that parties share, broken on purpose: the audit must notice each."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from synth.audit.canaries import extreme_rows
from synth.audit.replay import Neighbours, replay
from synth.privacy import dpsgd
from tests.audit.federations import small_run, training_subject


def violations() -> list[str]:
    world = small_run("autoregressive")
    rows = next(iter(world.data.values())).take(slice(0, 40))
    neighbours = Neighbours(rows, extreme_rows(world.plan.table)[1])
    return replay(training_subject(world.plan, world.asks), neighbours).violations


def test_an_honest_share_passes() -> None:
    assert violations() == []


@pytest.mark.parametrize(
    "share",
    [
        pytest.param(lambda deviation, parties: deviation / parties, id="deviations are divided, not variances"),
        pytest.param(lambda deviation, parties: deviation / (parties + 1) ** 0.5, id="the colluder counts as honest"),
    ],
)
def test_a_share_that_is_too_small_is_noticed(
    share: Callable[[float, int], float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dpsgd, "share_deviation", share)
    assert any("was charged" in found for found in violations())


def test_a_sum_that_is_not_clipped_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    clipped = dpsgd.ClippedSum.__call__

    def twice(*arguments: object) -> object:
        return 2 * clipped(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(dpsgd.ClippedSum, "__call__", twice)
    assert any("the clip norm is" in found for found in violations())
