"""How sequences move: correlations over a lag, how much a step changes, and what follows what.

Arrays are (sequences, steps, attributes), every attribute in units of its declared range.
"""

from __future__ import annotations

import numpy as np

from synth.metrics.tables import FloatArray

LEVELS = 8  # of a transition table


def lag_correlation(sequences: FloatArray, lag: int) -> FloatArray:
    """Per attribute: correlation over entities between a step and the one `lag` later, mean over steps."""
    steps = sequences.shape[1]
    found = [_correlation(sequences[:, step], sequences[:, step + lag]) for step in range(steps - lag)]
    mean: FloatArray = np.mean(found, axis=0)
    return mean


def mean_change(sequences: FloatArray) -> FloatArray:
    """Per attribute: the mean |difference| between neighbouring steps."""
    changes: FloatArray = np.abs(np.diff(sequences, axis=1)).mean(axis=(0, 1))
    return changes


def change_ratio(real: FloatArray, synthetic: FloatArray) -> FloatArray:
    """Per attribute: 1 is best; above, the synthetic one jitters. An attribute that never changes counts as 1."""
    ours, theirs = mean_change(real), mean_change(synthetic)
    ratio: FloatArray = np.divide(theirs, ours, out=np.where(theirs > 0, np.inf, 1.0), where=ours > 0)
    return ratio


def transition_distance(real: FloatArray, synthetic: FloatArray) -> float:
    """Total variation between tables of successive levels (eighths of the real ones), mean over attributes."""
    distances = []
    for attribute in range(real.shape[2]):
        cuts = np.unique(np.quantile(real[:, :, attribute], np.linspace(0, 1, LEVELS + 1)[1:-1]))
        tables = [_transitions(each[:, :, attribute], cuts) for each in (real, synthetic)]
        distances.append(np.abs(tables[0] - tables[1]).sum() / 2)
    return float(np.mean(distances))


def _transitions(values: FloatArray, cuts: FloatArray) -> FloatArray:
    level, size = np.searchsorted(cuts, values, side="right"), len(cuts) + 1
    table = np.bincount((level[:, :-1] * size + level[:, 1:]).ravel(), minlength=size * size)
    shares: FloatArray = table / table.sum()
    return shares


def _correlation(first: FloatArray, second: FloatArray) -> FloatArray:
    """Column by column; a constant one is correlated with nothing."""
    first, second = first - first.mean(axis=0), second - second.mean(axis=0)
    scale = np.sqrt((first**2).sum(axis=0) * (second**2).sum(axis=0))
    found: FloatArray = np.divide((first * second).sum(axis=0), scale, out=np.zeros_like(scale), where=scale > 0)
    return found
