"""Synthetic sequences beside real ones: figures, each with what real ones score and what needs no data, and pictures.

A predictive error alone says nothing (see `sequence_prediction`), nor does one detector, so none of them stands alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.decomposition import PCA
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors

from synth.metrics.evaluation_views import Fan, SequenceFigure, SequenceView
from synth.metrics.sequence_detection import measured_detection, recurrent_detection
from synth.metrics.sequence_dynamics import change_ratio, lag_correlation, transition_distance
from synth.metrics.sequence_prediction import constant_mae, data_free_walks, persistence_mae, predictive_mae
from synth.metrics.sequences import autocorrelation_distance, sequence_mmd
from synth.metrics.tables import FloatArray

FEWEST = 20  # sequences on each side
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)  # of a fan
SHOWN_ATTRIBUTES, SHOWN_PATHS, SHOWN_POINTS, MOST = 6, 4, 150, 2000


def sequence_view(
    names: list[str], real: FloatArray, synthetic: FloatArray, holdout: FloatArray | None, seed: int = 0
) -> SequenceView | None:
    """None where there are too few sequences to say anything."""
    if min(len(real), len(synthetic)) < FEWEST or real.shape[1] < 2:
        return None
    rng = np.random.default_rng(seed)
    counts = len(real), len(synthetic)
    real, synthetic = (each[rng.permutation(len(each))[:MOST]] for each in (real, synthetic))
    unseen = holdout if holdout is not None and len(holdout) >= FEWEST else None
    learned, test = (real, unseen[:MOST]) if unseen is not None else (real[::2], real[1::2])
    return SequenceView(
        steps=real.shape[1],
        real_sequences=counts[0],
        synthetic_sequences=counts[1],
        figures=_figures(learned, synthetic, test, seed),
        controls={
            "persistence": persistence_mae(test),
            "data_free": predictive_mae(data_free_walks(learned, seed=seed), test, seed=seed),
            "constant": constant_mae(test),
        },
        fans=[_fan(name, real[:, :, n], synthetic[:, :, n]) for n, name in enumerate(names[:SHOWN_ATTRIBUTES])],
        real_points=_points(real, real),
        synthetic_points=_points(real, synthetic),
        membership_auroc=None if unseen is None else _membership(real, synthetic, unseen[:MOST]),
    )


def _figures(real: FloatArray, synthetic: FloatArray, test: FloatArray, seed: int) -> list[SequenceFigure]:
    """Against real sequences that are not those that the right-hand figures are learned from."""
    far = min(5, real.shape[1] - 1)
    pairs: dict[str, Callable[[FloatArray], float]] = {
        "predictive_mae": lambda made: predictive_mae(made, test, seed=seed),
        "detected_by_gru": lambda made: recurrent_detection(test, made, seed=seed),
        "detected_by_trees": lambda made: measured_detection(test, made, seed=seed),
        "mmd": lambda made: sequence_mmd(test, made, seed=seed),
        "autocorrelation_distance": lambda made: autocorrelation_distance(test, made),
        "transition_distance": lambda made: transition_distance(test, made),
        "lag_1": lambda made: float(lag_correlation(made, 1).mean()),
        f"lag_{far}": lambda made: float(lag_correlation(made, far).mean()),
        "change_ratio": lambda made: _typical(change_ratio(test, made)),
    }
    return [SequenceFigure(name=name, value=of(synthetic), real=of(real)) for name, of in pairs.items()]


def _typical(ratio: FloatArray) -> float:
    return float(np.median(ratio[np.isfinite(ratio)])) if np.isfinite(ratio).any() else 1.0


def _fan(name: str, real: FloatArray, synthetic: FloatArray) -> Fan:
    def lines(values: FloatArray) -> list[list[float]]:
        found: list[list[float]] = np.quantile(values, SHARES, axis=0).tolist()
        return found

    paths = [values[:SHOWN_PATHS].tolist() for values in (real, synthetic)]
    return Fan(name=name, real=lines(real), synthetic=lines(synthetic), real_paths=paths[0], synthetic_paths=paths[1])


def _points(real: FloatArray, sequences: FloatArray) -> list[tuple[float, float]]:
    """Whole sequences as points of the plane in which the real ones differ most."""
    plane = PCA(2, random_state=0).fit(real.reshape(len(real), -1))
    shown = sequences[:SHOWN_POINTS]
    return [(float(x), float(y)) for x, y in plane.transform(shown.reshape(len(shown), -1))]


def _membership(members: FloatArray, synthetic: FloatArray, others: FloatArray) -> float:
    """AUROC of "the nearer to a synthetic sequence, the more likely its entity was in the table"; 0.5 tells nothing."""
    near = NearestNeighbors(n_neighbors=1).fit(synthetic.reshape(len(synthetic), -1))
    size = min(len(members), len(others))
    distances = [near.kneighbors(each[:size].reshape(size, -1))[0][:, 0] for each in (members, others)]
    return float(roc_auc_score(np.repeat([1, 0], size), -np.concatenate(distances)))
