"""Whether real and synthetic sequences can be told apart: two detectors, because one can be blind.

A recurrent detector alone called the worst generator of our trials perfect. So a second one looks at what people would
measure: means, spread, extremes, mean change and first correlation of every attribute. Both give |accuracy - 1/2| on
sequences held out: 0 is best, 0.5 is told apart always.
"""

from __future__ import annotations

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from torch import nn

from synth.metrics.tables import FloatArray

HIDDEN, BATCH, STEPS, RATE = 24, 128, 600, 3e-3
TRAINED = 0.7  # share of the sequences that a detector learns from


def recurrent_detection(real: FloatArray, synthetic: FloatArray, *, seed: int = 0) -> float:
    """A GRU over the steps (Yoon et al., NeurIPS 2019)."""
    (seen, labels), (held, truth) = _split(real, synthetic, seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        over_time, head = nn.GRU(real.shape[2], HIDDEN, batch_first=True), nn.Linear(HIDDEN, 1)
    generator = torch.Generator().manual_seed(seed)
    rows, targets = (torch.tensor(each, dtype=torch.float32) for each in (seen, labels))
    optimizer = torch.optim.Adam([*over_time.parameters(), *head.parameters()], RATE)
    for _ in range(STEPS):
        batch = torch.randint(len(rows), (BATCH,), generator=generator)
        logits = head(over_time(rows[batch])[0][:, -1])[:, 0]
        loss = nn.functional.binary_cross_entropy_with_logits(logits, targets[batch])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    with torch.no_grad():
        told = head(over_time(torch.tensor(held, dtype=torch.float32))[0][:, -1])[:, 0].numpy() > 0
    return float(abs((told == truth.astype(bool)).mean() - 0.5))


def measured_detection(real: FloatArray, synthetic: FloatArray, *, seed: int = 0) -> float:
    """Boosted trees over measures of every sequence."""
    (seen, labels), (held, truth) = _split(real, synthetic, seed)
    model = HistGradientBoostingClassifier(random_state=seed, max_iter=60).fit(_measures(seen), labels)
    return float(abs(model.score(_measures(held), truth) - 0.5))


def _split(
    real: FloatArray, synthetic: FloatArray, seed: int
) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
    """As many of both, shuffled; what is learned from, and what is held out."""
    rng, size = np.random.default_rng(seed), min(len(real), len(synthetic))
    both = np.concatenate([each[rng.permutation(len(each))[:size]] for each in (real, synthetic)])
    labels = np.repeat([1.0, 0.0], size)
    order = rng.permutation(2 * size)
    cut = int(TRAINED * 2 * size)
    learned, held = order[:cut], order[cut:]
    return (both[learned], labels[learned]), (both[held], labels[held])


def _measures(sequences: FloatArray) -> FloatArray:
    """(sequences, measures)."""
    centred = sequences - sequences.mean(axis=1, keepdims=True)
    change = np.diff(sequences, axis=1)
    first = (centred[:, 1:] * centred[:, :-1]).mean(axis=1) / np.maximum((centred**2).mean(axis=1), 1e-9)
    parts = [sequences.mean(axis=1), sequences.std(axis=1), sequences.min(axis=1), sequences.max(axis=1)]
    parts += [np.abs(change).mean(axis=1), np.abs(change).max(axis=1), first, sequences[:, 0], sequences[:, -1]]
    return np.concatenate(parts, axis=1)
