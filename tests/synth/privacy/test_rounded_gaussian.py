"""Gaussian noise rounded to integers: the exact law, ties and far tails included."""

import mpmath
import numpy as np
import pytest
from scipy import stats

from synth.errors import PrivacyError
from synth.privacy import noise
from synth.privacy.noise import NoiseSource, seeded_source
from synth.privacy.rounded_gaussian import MOST_SIGMA, nearest_magnitudes, settled_magnitude

BITS = 63


def tail(sigma: float, magnitude: int) -> mpmath.mpf:
    """P(|X| σ ≥ magnitude - ½)."""
    return mpmath.erfc((magnitude - mpmath.mpf(0.5)) / (sigma * mpmath.sqrt(2))) if magnitude else mpmath.mpf(1)


def no_further_bits() -> int:
    raise AssertionError("63 bits were enough for this draw")


@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.7])
def test_the_law_at_small_deviations(sigma: float) -> None:
    """χ² of 400,000 draws against masses from mpmath, cells of fewer than 20 expected draws put together: a right
    sampler fails one seed in 10,000."""
    count = 400_000
    values = seeded_source(3, "law").rounded_gaussian(sigma, count)
    reach = int(np.abs(values).max()) + 1
    masses = np.array([float(tail(sigma, k) - tail(sigma, k + 1)) for k in range(reach)])
    signed = np.concatenate([masses[:0:-1] / 2, masses[:1], masses[1:] / 2])
    found = np.bincount(values + reach - 1, minlength=2 * reach - 1)
    enough = signed * count >= 20
    expected = np.append(signed[enough], 1 - signed[enough].sum()) * count
    seen = np.append(found[enough], found[~enough].sum())
    assert stats.chisquare(seen, expected).pvalue > 1e-4


def test_moments_at_the_deviation_of_a_step() -> None:
    """A million draws of σ = 2^25: mean, variance and fourth moment within 4.5 standard errors (7e-6 each); and the
    last bit, which a double's 53 do not reach from, is fair."""
    sigma, count = 2.0**25, 10**6
    values = seeded_source(4, "moments").rounded_gaussian(sigma, count)
    scaled = values / sigma
    assert abs(scaled.mean()) < 4.5 / np.sqrt(count)
    assert abs((scaled**2).mean() - 1) < 4.5 * np.sqrt(2 / count)
    assert abs((scaled**4).mean() - 3) < 4.5 * np.sqrt(96 / count)
    assert abs((values & 1).mean() - 0.5) < 4.5 * 0.5 / np.sqrt(count)
    assert 4.5 < np.abs(scaled).max() < 6  # neither bound holds for one sample in 500


def test_no_value_is_likelier_than_it_should_be() -> None:
    """The generator before this one gave exact zeros, in pairs, once in 2^25: here 10^7 draws of σ = 2^25 have 0.12
    zeros on average, and no two in neighbouring places (two zeros in all: one seed in 140)."""
    values = np.concatenate([seeded_source(5, "atoms", part).rounded_gaussian(2.0**25, 10**6) for part in range(10)])
    assert np.count_nonzero(values == 0) < 2


@pytest.mark.parametrize("sigma", [0.7, 2.0**25, 2.0**34])
def test_doubles_are_trusted_only_where_they_are_right(sigma: float) -> None:
    words = seeded_source(6, "words").uint64(1500) >> np.uint64(1)
    nearest, unsettled = nearest_magnitudes(sigma, words)
    exact = np.array([settled_magnitude(sigma, int(word), no_further_bits) for word in words])
    certain = np.setdiff1d(np.arange(len(words)), unsettled)
    np.testing.assert_array_equal(nearest[certain], exact[certain])


@pytest.mark.parametrize("magnitude", [1, 5, 40_000_000, 150_000_000])
def test_a_tie_is_broken_by_further_bits(magnitude: int) -> None:
    """The one word whose interval holds the boundary between two integers: only the bits behind it can tell."""
    sigma = 2.0**25 if magnitude > 100 else 2.0
    with mpmath.workprec(300):
        boundary = mpmath.ldexp(tail(sigma, magnitude), BITS)
        word = int(mpmath.floor(boundary))
        behind = int(mpmath.floor(mpmath.ldexp(boundary - word, 64)))
    _, unsettled = nearest_magnitudes(sigma, np.array([word], dtype=np.uint64))
    assert unsettled.tolist() == [0]
    assert settled_magnitude(sigma, word, lambda: behind - 1) == magnitude  # a smaller U is further out
    assert settled_magnitude(sigma, word, lambda: behind + 1) == magnitude - 1
    words = iter([behind, 0])
    assert settled_magnitude(sigma, word, lambda: next(words)) == magnitude


def test_the_far_tail_has_no_end() -> None:
    """63 zero bits leave everything beyond 9.1 σ open; the next ones say where."""
    assert settled_magnitude(1.0, 0, lambda: 2**63) == 9
    words = iter([0, 2**63])
    assert settled_magnitude(1.0, 0, lambda: next(words)) == 13


def test_further_bits_leave_the_stream_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values do not depend on how many are drawn at once, nor on whether a neighbour needed more bits."""
    whole = seeded_source(7).rounded_gaussian(2.0**34, 40_000)  # about 1 % are settled the slow way
    pieces = seeded_source(7)
    np.testing.assert_array_equal(
        whole, np.concatenate([pieces.rounded_gaussian(2.0**34, n) for n in (1, 16_384, 23_615)])
    )
    asked = []

    def asking(sigma: float, uniform: int, further_word: object) -> int:
        asked.append(further_word())  # type: ignore[operator]
        return settled_magnitude(sigma, uniform, no_further_bits)

    monkeypatch.setattr(noise, "settled_magnitude", asking)
    np.testing.assert_array_equal(whole, seeded_source(7).rounded_gaussian(2.0**34, 40_000))
    assert len(set(asked)) == len(asked) > 100


@pytest.mark.parametrize("sigma", [0.0, -1.0, float("nan"), float("inf"), 2 * MOST_SIGMA])
def test_impossible_deviations_are_refused(sigma: float) -> None:
    with pytest.raises(PrivacyError, match="deviation"):
        NoiseSource().rounded_gaussian(sigma, 1)
