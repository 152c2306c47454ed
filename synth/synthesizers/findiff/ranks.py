"""Numbers as normal scores and back: Φ⁻¹ of a value's rank in its column's mixture, a smooth quantile transform."""

from __future__ import annotations

import torch
from torch import Tensor

from synth.encoding.features import REACH, WIDTHS, Span
from synth.encoding.mixtures import Mixture

FARTHEST = 5.2  # scores beyond it are cut, as scikit-learn's are
HALVINGS = 40


def scores(rows: Tensor, span: Span, mixture: Mixture) -> Tensor:
    """[n, 1]: of the number whose α is at `span` and whose modes follow it. A missing one is the median, score 0."""
    means, stds = torch.as_tensor(mixture.means), torch.as_tensor(mixture.stds)
    modes = rows[:, span.start + 1 : span.start + 1 + len(mixture)].double()
    value = (modes @ means) + WIDTHS * rows[:, span.start].double() * (modes @ stds)
    score = torch.special.ndtri(_rank(value, mixture)).clamp(-FARTHEST, FARTHEST)
    return torch.where(modes.sum(1) > 0, score, 0.0).float()[:, None]


def from_scores(rows: Tensor, score: Tensor, span: Span, mixture: Mixture) -> None:
    """Write the number of each score into the rows: its likeliest mode, and α there."""
    means, stds = torch.as_tensor(mixture.means), torch.as_tensor(mixture.stds)
    value = _value(torch.special.ndtr(score.double().clamp(-FARTHEST, FARTHEST)), mixture)
    away = (value[:, None] - means) / stds
    mode = (torch.as_tensor(mixture.weights).log() - stds.log() - away.square() / 2).argmax(1)
    everyone = torch.arange(len(rows))
    rows[:, span.start] = (away[everyone, mode] / WIDTHS).clamp(-REACH, REACH).float()
    rows[everyone, span.start + 1 + mode] = 1.0


def _rank(value: Tensor, mixture: Mixture) -> Tensor:
    means, stds = torch.as_tensor(mixture.means), torch.as_tensor(mixture.stds)
    weights = torch.as_tensor(mixture.weights / mixture.weights.sum())
    rank: Tensor = torch.special.ndtr((value[:, None] - means) / stds) @ weights
    return rank


def _value(rank: Tensor, mixture: Mixture) -> Tensor:
    """The inverse of `_rank`, by halving."""
    reach = 8 * float(mixture.stds.max())
    low = torch.full_like(rank, float(mixture.means.min()) - reach)
    high = torch.full_like(rank, float(mixture.means.max()) + reach)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        below = _rank(middle, mixture) < rank
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    return (low + high) / 2
