"""Fidelity of sequences."""

from __future__ import annotations

import numpy as np
import pytest

from synth.errors import InputError
from synth.metrics.sequences import autocorrelation, autocorrelation_distance, sequence_mmd


def test_autocorrelation_by_hand() -> None:
    alternating = np.array([[1.0, -1.0, 1.0, -1.0]])[:, :, None]
    # lag 1: three products of -1 over four steps; lag 2: two products of +1.
    assert autocorrelation(alternating)[:, 0].tolist() == pytest.approx([-0.75, 0.5])
    assert autocorrelation(np.ones((1, 4, 1))).tolist() == [[0.0], [0.0]]
    assert autocorrelation_distance(alternating, np.ones((2, 4, 1))) == pytest.approx(0.625)


def test_mmd_sees_order_within_a_sequence() -> None:
    rng = np.random.default_rng(0)
    rising = np.sort(rng.random((400, 8, 1)), axis=1)
    shuffled = rng.permuted(rising, axis=1)
    assert sequence_mmd(rising, shuffled) > 0.02
    assert abs(sequence_mmd(rising[:200], rising[200:])) < 0.005


@pytest.mark.parametrize(
    ("real", "synthetic", "said"),
    [
        (np.zeros((3, 4)), np.zeros((3, 4, 1)), "shape"),
        (np.zeros((3, 4, 1)), np.zeros((3, 5, 1)), "differ"),
        (np.full((3, 4, 1), np.nan), np.zeros((3, 4, 1)), "NaN"),
        (np.zeros((1, 4, 1)), np.zeros((3, 4, 1)), "two sequences"),
    ],
)
def test_bad_sequences_are_refused(real: np.ndarray, synthetic: np.ndarray, said: str) -> None:
    with pytest.raises(InputError, match=said):
        sequence_mmd(real, synthetic)
