"""2,400 moves of a hostile aggregator with one colluding party break no promise; `make bench-adversary`: 100,000."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adversary.game import Violations, play


@pytest.mark.parametrize("seed", range(12))
def test_no_game_breaks_a_promise(seed: int, tmp_path: Path) -> None:
    assert play(tmp_path / "game", seed, steps=200) == Violations()
