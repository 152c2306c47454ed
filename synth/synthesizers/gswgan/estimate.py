"""From noisy slopes to the moments behind them: ridge regression over all asks so far. Post-processing, at no cost.

Slopes are linear in the made-up rows, S = X W + noise with one W for all asks, so the answers of all asks are one
regression. W is taken to be small unless the slopes say otherwise: a priori entry (a, b) has mean 0 and deviation
rows × PRIOR × s_a s_b, with s the deviation of a scaled label. W is symmetric and every entry is found twice, as what
label a says of b and as what b says of a; the two are averaged by their precision, for the rarer one is far noisier.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

PRIOR = 0.1  # a usual correlation of two labels
LEAST_VARIANCE = 1e-6  # of a label


@dataclass
class SlopeRegression:
    """Sums over the asks so far; all that must be remembered of them."""

    gram: Tensor  # [row width, row width]: Σ Xᵀ X / variance of the noise
    cross: Tensor  # Σ Xᵀ S / variance of the noise

    @classmethod
    def of(cls, width: int) -> SlopeRegression:
        return cls(*(torch.zeros(width, width, dtype=torch.float64) for _ in range(2)))

    def add(self, made_up: Tensor, slopes: Tensor, deviation: float) -> None:
        """`slopes` of one ask at its made-up rows, with noise of this deviation."""
        self.gram = self.gram + made_up.T @ made_up / deviation**2
        self.cross = self.cross + made_up.T @ slopes / deviation**2

    def weights(self, spread: Tensor, rows: float) -> Tensor:
        """[row width, row width]: W; `spread` is the deviation of every scaled label."""
        values, vectors = torch.linalg.eigh(spread[:, None] * self.gram * spread)
        values = values.clamp_min(0.0)
        ridge = (rows * PRIOR * spread) ** -2.0  # of each output
        shrunk = 1.0 / (values[:, None] + ridge)  # [directions, outputs]
        found = spread[:, None] * (vectors @ (shrunk * (vectors.T @ (spread[:, None] * self.cross))))
        precision = 1.0 / (spread.square()[:, None] * (vectors.square() @ shrunk))
        weighed = found * precision
        both: Tensor = (weighed + weighed.T) / (precision + precision.T)
        return both


def spread_of(shares: Tensor, scale: Tensor) -> Tensor:
    return (shares * (1 - shares)).clamp_min(LEAST_VARIANCE).sqrt() * scale
