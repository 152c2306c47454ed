"""What a predictor learns from synthetic sequences: train on them, predict the next step of real ones (MAE).

The figure alone says nothing. Predicting "as it was" needs no data at all, and a predictor trained on random walks that
have seen no data does well on anything that moves slowly; so both stand beside it, always.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from synth.metrics.tables import FloatArray

HIDDEN, BATCH, STEPS, RATE = 32, 128, 1500, 3e-3
WALK_STEP = 0.03  # of a walk that has seen no data, in units of the declared range


class _Predictor(nn.Module):
    """One recurrent layer (Yoon et al., NeurIPS 2019, section 5.1; an LSTM as FedSTDG takes it)."""

    def __init__(self, attributes: int) -> None:
        super().__init__()
        self.over_time = nn.LSTM(attributes, HIDDEN, batch_first=True)
        self.head = nn.Linear(HIDDEN, attributes)

    def forward(self, seen: torch.Tensor) -> torch.Tensor:
        predicted: torch.Tensor = self.head(self.over_time(seen)[0])
        return predicted


def predictive_mae(trained_on: FloatArray, test: FloatArray, *, seed: int = 0) -> float:
    """Mean |error| of the next step on `test`, all attributes; both are (sequences, steps, attributes), in [0, 1]."""
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = _Predictor(trained_on.shape[2])
    rows = torch.tensor(trained_on, dtype=torch.float32)
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    falling = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, STEPS)
    for _ in range(STEPS):
        batch = rows[torch.randint(len(rows), (min(BATCH, len(rows)),), generator=generator)]
        loss = (model(batch[:, :-1]) - batch[:, 1:]).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        falling.step()
    with torch.no_grad():
        held = torch.tensor(test, dtype=torch.float32)
        return float((model(held[:, :-1]) - held[:, 1:]).abs().mean())


def persistence_mae(test: FloatArray) -> float:
    """The error of "as it was"."""
    return float(np.abs(np.diff(test, axis=1)).mean())


def constant_mae(test: FloatArray) -> float:
    """The error of the middle of the declared range, whatever was seen."""
    return float(np.abs(test[:, 1:] - 0.5).mean())


def data_free_walks(like: FloatArray, *, seed: int = 0) -> FloatArray:
    """Random walks in [0, 1] that have seen no data, as many and as long."""
    rng = np.random.default_rng(seed)
    count, steps, attributes = like.shape
    steps_taken = rng.normal(scale=WALK_STEP, size=(count, steps - 1, attributes))
    starts = rng.random((count, 1, attributes))
    walks: FloatArray = np.clip(np.concatenate([starts, starts + np.cumsum(steps_taken, axis=1)], axis=1), 0.0, 1.0)
    return walks
