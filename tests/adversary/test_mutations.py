"""Holes opened again are noticed, each by the check that was made for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adversary.mutations import MUTATIONS, caught


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_hole_that_was_found_once_is_noticed(name: str, tmp_path: Path) -> None:
    assert caught(name, tmp_path)
