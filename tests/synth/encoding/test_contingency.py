"""Counting cliques: exact, additive over parties, and laid out so that the flat vector can be taken apart again."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from synth.encoding import contingency

SIZES = [3, 2, 4]
CLIQUES = [(0,), (0, 1), (1, 2), (0, 1, 2)]


def columns(seed: int, rows: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, size, rows) for size in SIZES]


@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
def test_tables_are_crosstabs(seed: int, rows: int) -> None:
    found = columns(seed, rows)
    vector = contingency.count(found, SIZES, CLIQUES)
    tables = dict(zip(CLIQUES, contingency.split(vector, CLIQUES, SIZES), strict=True))
    expected = pd.crosstab(pd.Categorical(found[1], range(2)), pd.Categorical(found[2], range(4)), dropna=False)
    np.testing.assert_array_equal(tables[1, 2], expected.to_numpy())
    for table in tables.values():
        assert table.sum() == rows
    np.testing.assert_array_equal(tables[0, 1, 2].sum(axis=2), tables[0, 1])


@given(st.integers(0, 2**32 - 1), st.integers(1, 30))
def test_counts_add_up_over_parts(seed: int, rows: int) -> None:
    found = columns(seed, 2 * rows)
    parts = [contingency.count([c[half] for c in found], SIZES, CLIQUES) for half in (slice(rows), slice(rows, None))]
    np.testing.assert_array_equal(parts[0] + parts[1], contingency.count(found, SIZES, CLIQUES))


def test_one_row_changes_one_cell_of_each_table() -> None:
    """The whole privacy argument rests on this."""
    found = columns(1, 40)
    fewer = [column[1:] for column in found]
    change = contingency.count(found, SIZES, CLIQUES) - contingency.count(fewer, SIZES, CLIQUES)
    assert sorted(change[change != 0]) == [1] * len(CLIQUES)


def test_cliques_survive_packing() -> None:
    packed = contingency.pack_cliques(CLIQUES)
    assert packed.shape == (4, 3)
    assert contingency.unpack_cliques(packed) == CLIQUES
    assert contingency.cell_count(CLIQUES, SIZES) == 3 + 6 + 8 + 24
