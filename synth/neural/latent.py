"""Codes that look like luck, without a distribution a row: the Wasserstein autoencoder's penalty.

MMD between a batch's codes and normal ones (Tolstikhin et al. 2018) couples the rows of a batch, and clipping bounds no
row of it. For one row it is what its code adds: nearness to other rows' codes less nearness to luck. Other rows' codes
are private; codes of the model's own rows, drawn and encoded again, are not, and when it has learned they are alike. So
each row is held against these (`apart`), which costs nothing; `mmd` is the published term.
"""

from __future__ import annotations

import torch
from torch import Tensor


def nearness(here: Tensor, there: Tensor) -> Tensor:
    """[m, n]: the inverse multiquadratic kernel κ / (κ + |·|²), κ twice the codes' width (unit prior)."""
    scale = 2.0 * here.shape[1]
    square = here.square().sum(1)[:, None] + there.square().sum(1)[None] - 2 * here @ there.T
    return scale / (scale + square.clamp(min=0))


def apart(codes: Tensor, own: Tensor, luck: Tensor) -> Tensor:
    """[rows]: what each code adds to the distance of the model's own codes from luck."""
    return 2 * (nearness(codes, own).mean(1) - nearness(codes, luck).mean(1))


def mmd(codes: Tensor, luck: Tensor, there: Tensor) -> Tensor:
    """The published estimate between the codes that are there (a mask) and as many normal ones; 0 of a single one."""
    count, pairs = there.sum(), there[:, None] * there[None]
    apart_pairs = pairs * (1 - torch.eye(len(codes)))
    several = (count * (count - 1)).clamp(min=1.0)
    within = ((nearness(luck, luck) + nearness(codes, codes)) * apart_pairs).sum() / several
    across = 2 * (nearness(luck, codes) * pairs).sum() / count.square().clamp(min=1.0)
    return torch.where(count > 1, within - across, torch.zeros(()))
