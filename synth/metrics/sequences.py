"""Fidelity of sets of sequences: arrays of shape (sequences, steps, attributes).

MMD as the FedSTDG paper takes it (each sequence one point of steps × attributes), and the gap between mean
autocorrelation functions, which sees wrong dynamics that no single step shows.
"""

from __future__ import annotations

import numpy as np

from synth.errors import InputError
from synth.metrics.kernel import mmd_of_points
from synth.metrics.tables import FloatArray


def sequence_mmd(real: FloatArray, synthetic: FloatArray, *, seed: int = 0) -> float:
    """MMD² of whole sequences; 0 is best, slightly below 0 is possible."""
    _check(real, synthetic)
    flat = [array.reshape(len(array), -1) for array in (real, synthetic)]
    value = mmd_of_points(flat[0], flat[1], seed=seed)
    if value is None:
        raise InputError("MMD needs at least two sequences on each side; give more")
    return value


def autocorrelation_distance(real: FloatArray, synthetic: FloatArray) -> float:
    """Mean |difference| of the mean autocorrelation over attributes and lags 1..steps/2, 0..2; 0 is best."""
    _check(real, synthetic)
    return float(np.abs(autocorrelation(real) - autocorrelation(synthetic)).mean())


def autocorrelation(sequences: FloatArray) -> FloatArray:
    """Mean over sequences, shape (lags, attributes). A constant sequence counts as 0."""
    steps = sequences.shape[1]
    centred = sequences - sequences.mean(axis=1, keepdims=True)
    variance = np.square(centred).mean(axis=1)  # (sequences, attributes)
    result = []
    for lag in range(1, steps // 2 + 1):
        covariance = (centred[:, lag:] * centred[:, :-lag]).sum(axis=1) / steps
        result.append(np.divide(covariance, variance, out=np.zeros_like(variance), where=variance > 0).mean(axis=0))
    return np.array(result)


def _check(real: FloatArray, synthetic: FloatArray) -> None:
    for array, what in ((real, "real"), (synthetic, "synthetic")):
        if array.ndim != 3 or array.shape[1] < 2 or len(array) == 0:
            raise InputError(f"the {what} sequences must have shape (sequences, steps >= 2, attributes)")
        if not np.isfinite(array).all():
            raise InputError(f"the {what} sequences hold NaN or infinite numbers; fill or remove those steps")
    if real.shape[1:] != synthetic.shape[1:]:
        raise InputError(f"real steps × attributes {real.shape[1:]} differ from synthetic {synthetic.shape[1:]}")
