"""The peers' bench: cells lose nothing but the place inside a cell, and whoever failed is listed with the reason."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.peers import results
from benchmarks.peers.programs.job import cuts, from_cells, to_cells
from benchmarks.peers.roster import ROSTER
from benchmarks.wide_table import wide_schema, wide_table
from synth.metrics.tables import table_of


@settings(deadline=None)  # the first example imports
@given(low=st.integers(-1000, 1000), width=st.integers(1, 5000), seed=st.integers(0, 99))
def test_a_number_drawn_from_a_cell_lies_in_that_cell(low: int, width: int, seed: int) -> None:
    high, rng = low + width, np.random.default_rng(seed)
    values = pd.Series(rng.integers(low, high + 1, 200))
    cells = to_cells(values, low, high)
    drawn = from_cells(cells, low, high, rng)
    assert cells.max() <= len(cuts(low, high))
    assert low <= drawn.min() <= drawn.max() <= high
    assert (to_cells(pd.Series(drawn), low, high) == cells).all()
    assert (drawn[values == low] == low).all()  # the lowest value has a cell of its own


def test_results_list_who_ran_and_who_could_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path / "RESULTS.md")
    ran, failed = ROSTER[0], ROSTER[1]
    cost = {"seconds": 9.0, "cpu_seconds": 8.0, "peak_mb": 700.0}
    figures = dict.fromkeys(results.FIGURES, 0.25)
    for peer, more in ((ran, {"error": None, "version": "ours 1", **figures}), (failed, {"error": "exit 1: no luck"})):
        (tmp_path / f"{results.key(peer, 1.0)}.json").write_text(json.dumps(cost | more))
    text = results.write_results(tmp_path).read_text()
    assert f"| {ran.name} | 1 | 0.250 |" in text
    assert f"- {failed.name}, ε = 1: exit 1: no luck" in text
    for peer in ROSTER:
        assert f"| {peer.name} | {peer.provable} |" in text


def test_the_wide_table_fits_its_schema_and_is_the_seeds_alone() -> None:
    rows = wide_table(300, seed=1)
    assert rows.shape == (300, 55)
    assert table_of(rows, wide_schema()).rows == 300
    assert rows.equals(wide_table(300, seed=1))
    assert not rows.equals(wide_table(300, seed=2))
