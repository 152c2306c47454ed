"""From noisy tables of pairs to the moments that the generator is taught: post-processing of what was released."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from synth.encoding.contingency import Clique
from synth.encoding.features import Span
from synth.encoding.scales import Floats

PRIOR = 0.1  # a usual correlation of two labels


def moments_of(
    tables: Sequence[Floats],
    cliques: Sequence[Clique],
    variances: Sequence[float],
    spans: Sequence[Span],
    shares: Tensor,
    rows: float,
) -> Tensor:
    """[row width, row width] of rows centred by the released shares; 0 for pairs that were not counted. What is hardly
    more than noise is shrunk towards independence, cell by cell."""
    known = shares.double().numpy()
    found = np.zeros((len(known), len(known)))
    for table, (one, other), variance in zip(tables, cliques, variances, strict=True):
        here, there = spans[one], spans[other]
        p, q = known[here.slice], known[there.slice]
        share = table / rows
        block = share - np.outer(p, share.sum(0)) - np.outer(share.sum(1), q) + np.outer(p, q)
        usual = PRIOR**2 * np.outer(p * (1 - p), q * (1 - q)) + 1e-12
        block = block * usual / (usual + variance / rows**2)
        found[here.slice, there.slice], found[there.slice, here.slice] = block, block.T
    return torch.from_numpy(found).float()
