"""What noisy tables say of pairs: noise goes, relations stay, whatever is forbidden stays forbidden."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.counting.estimates import Measurement, measured
from synth.counting.relations import relations
from synth.encoding.contingency import Clique
from synth.encoding.scales import Floats

ROWS = 20_000.0
COLUMNS, BINS = 6, 12


def truth(strength: float) -> dict[Clique, Floats]:
    """Columns that all rise and fall with one thing: every pair's interaction has one direction."""
    margin, slope = np.full(BINS, 1 / BINS), np.linspace(-1, 1, BINS)
    table = np.outer(margin, margin) * (1 + strength * np.outer(slope, slope))
    return dict.fromkeys(combinations(range(COLUMNS), 2), table)


def noisy(tables: dict[Clique, Floats], sigma: float, seed: int) -> dict[Clique, Measurement]:
    rng = np.random.default_rng(seed)
    return {
        pair: measured(pair, ROWS * table + rng.normal(0, sigma, table.shape), sigma**2)
        for pair, table in tables.items()
    }


def distance(found: dict[Clique, Floats], real: dict[Clique, Floats]) -> float:
    return float(np.mean([np.abs(found[pair] - real[pair]).sum() / 2 for pair in real]))


def found_in(seen: dict[Clique, Measurement], modelled: dict[Clique, Floats]) -> dict[Clique, Floats]:
    return relations(seen, modelled, {}, lambda _: False)


def independent(tables: dict[Clique, Floats]) -> dict[Clique, Floats]:
    return {pair: np.outer(table.sum(axis=1), table.sum(axis=0)) for pair, table in tables.items()}


@pytest.mark.parametrize("sigma", [20.0, 80.0])
def test_a_relation_under_the_noise_of_single_cells_is_found(sigma: float) -> None:
    """A cell holds 139 rows, of which the relation moves 35 on average; five seeds, errors far below what is asked."""
    real = truth(0.75)
    for seed in range(5):
        seen = noisy(real, sigma, seed)
        found = found_in(seen, independent(real))
        raw = distance({pair: table.counts / ROWS for pair, table in seen.items()}, real)
        assert distance(found, real) < 0.25 * raw
        assert distance(found, real) < 0.6 * distance(independent(real), real)


def test_noise_alone_is_taken_for_what_it_is() -> None:
    real = truth(0.0)
    for seed in range(5):
        seen = noisy(real, 80.0, seed)
        raw = distance({pair: table.counts / ROWS for pair, table in seen.items()}, real)
        assert distance(found_in(seen, independent(real)), real) < 0.1 * raw


def test_without_noise_a_table_is_left_as_it_is() -> None:
    real = truth(0.75)
    assert distance(found_in(noisy(real, 0.01, 0), independent(real)), real) < 1e-3


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.floats(0.1, 1e4))
def test_tables_are_distributions_with_their_columns_margins(seed: int, sigma: float) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 7, 4)
    margins = [rng.dirichlet(np.ones(size)) for size in sizes]
    real = {(a, b): np.outer(margins[a], margins[b]) for a, b in combinations(range(4), 2)}
    for (first, second), table in found_in(noisy(real, sigma, seed), real).items():
        assert table.min() > 0
        np.testing.assert_allclose(table.sum(axis=1), margins[first], atol=1e-4)
        np.testing.assert_allclose(table.sum(axis=0), margins[second], atol=1e-4)


def test_a_relation_that_no_other_table_shows_is_found_too() -> None:
    """Two columns that have to do with each other and with nobody else, beside columns that rise and fall together."""
    real = truth(0.75)
    swapped = np.full((BINS, BINS), 0.2 / BINS**2) + 0.8 * np.eye(BINS)[:, ::-1] / BINS
    for column in range(COLUMNS - 2):
        real |= {(column, other): independent(real)[(column, other)] for other in (COLUMNS - 2, COLUMNS - 1)}
    real[(COLUMNS - 2, COLUMNS - 1)] = swapped
    found = found_in(noisy(real, 20.0, 1), independent(real))
    pair = (COLUMNS - 2, COLUMNS - 1)
    assert np.abs(found[pair] - swapped).sum() / 2 < 0.1
    assert np.abs(independent(real)[pair] - swapped).sum() / 2 > 0.7


def test_what_is_forbidden_gets_nothing() -> None:
    real = truth(0.5)
    possible = np.arange(BINS)[:, None] >= np.arange(BINS)[None, :] - 3
    held = real[(0, 1)] * possible
    modelled = {**independent(real), (0, 1): held / held.sum()}
    found = relations(noisy(real, 30.0, 0), modelled, {(0, 1): possible}, lambda _: False)
    assert found[(0, 1)][~possible].max() == 0
    assert all(table.min() > 0 for pair, table in found.items() if pair != (0, 1))
