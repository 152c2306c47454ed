"""The exact tables against scipy, and the sampler against the tables."""

import math

import numpy as np
import pytest
from scipy import stats

from synth.errors import PrivacyError
from synth.privacy.noise import NoiseSource, seeded_source
from synth.privacy.skellam import UNIFORM_BITS, skellam


@pytest.mark.parametrize("variance", [0.01, 1.0, 37.3, 1937.0, 2e6])
def test_probabilities_are_those_of_the_distribution(variance: float) -> None:
    table = skellam(variance)
    magnitudes = np.arange(1, int(6 * math.sqrt(variance)) + 3)
    expected = stats.skellam.pmf(magnitudes, variance / 2, variance / 2)
    np.testing.assert_allclose(table.magnitudes[magnitudes - 1], expected, rtol=1e-9)
    assert table.zero + 2 * table.magnitudes.sum() == pytest.approx(1, abs=1e-14)
    assert float(table.magnitudes @ np.arange(1, len(table.magnitudes) + 1) ** 2) * 2 == pytest.approx(variance)


def test_tails_leave_out_less_than_one_unit_of_the_last_place() -> None:
    table = skellam(37.3)
    assert table.tails[-1] >= 1
    assert table.sampling_error < 2.0 ** (8 - UNIFORM_BITS)
    assert list(table.tails) == sorted(table.tails, reverse=True)


@pytest.mark.parametrize("variance", [0.5, 8.0, 300.0])
def test_draws_follow_the_probabilities(variance: float) -> None:
    """Chi-square at a fixed seed; a right sampler would fail one seed in 10,000."""
    table, count = skellam(variance), 200_000
    draws = seeded_source(7, "chi-square", int(variance)).skellam(variance, count)
    reach = int(np.searchsorted(-count * table.magnitudes, -20.0))  # cells with at least 20 expected draws
    inner = np.concatenate([table.magnitudes[:reach][::-1], [table.zero], table.magnitudes[:reach]])
    expected = count * np.append(inner, 1 - inner.sum())
    observed = np.array([np.sum(draws == k) for k in range(-reach, reach + 1)])
    observed = np.append(observed, count - observed.sum())
    assert stats.chisquare(observed, expected).pvalue > 1e-4


def test_a_tie_in_the_first_word_is_decided_by_the_rest() -> None:
    """Force ties by feeding the threshold itself as the first 63 bits; both outcomes must occur, no third."""
    table = skellam(8.0)
    source = seeded_source(3)
    first = np.full(200, table.first_words[len(table.tails) - 2], dtype=np.uint64)  # the tail of magnitude 2
    assert set(source.magnitudes(table, first)) == {1, 2}
    between = first - np.uint64(1), first + np.uint64(1)
    assert set(source.magnitudes(table, between[0])) == {2}
    assert set(source.magnitudes(table, between[1])) == {1}


@pytest.mark.parametrize("variance", [0.0, -1.0, float("nan"), float("inf"), 1e12])
def test_an_impossible_variance_is_refused(variance: float) -> None:
    with pytest.raises(PrivacyError, match="variance"):
        NoiseSource().skellam(variance, 1)
