"""Which of many candidates become the table: those that together have the candidates' pairs of labels.

Rows that are drawn one by one have, beside the model's error, the sampling error of a second survey; for 30,000 rows
that is half of what a good network's pairs are off. There are several candidates for every row of the table, and what
all of them say of a pair is known better than so many rows could show. So rows change places with candidates while that
brings the table's pairs nearer to the candidates'. It reads nothing but what the model drew.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from synth.encoding.scales import Floats
from synth.neural.fitting import chosen

Places = npt.NDArray[np.int64]

ROUNDS, PROPOSALS = 80, 8_000  # of exchanges; candidates that are looked at in each
FIRST_SHARE, LAST_SHARE = 0.011, 0.001  # of the rows, that change places at most in a round: it falls evenly
SOFTENING = 2.0  # rows added to a cell, which is off by so much in any case
FEWEST_ROWS, WIDEST = 1_000, 1_000  # fewer rows have no pairs to speak of; wider blocks cost too much


def chosen_by_pairs(blocks: Tensor, weights: Floats, count: int, rng: np.random.Generator) -> Places:
    """`count` places among the candidates, which are one-hot blocks side by side [candidates, width]; `weights` say how
    often each should be there."""
    kept = chosen(weights, count, rng)
    if count < FEWEST_ROWS or blocks.shape[1] > WIDEST:
        return kept
    rising = np.cumsum(weights / weights.sum())
    shares = torch.as_tensor(weights / weights.sum(), dtype=blocks.dtype, device=blocks.device)
    wanted = count * (blocks.T * shares) @ blocks  # [width, width]: of every pair of labels; labels on the diagonal
    dear = 1 / (wanted + SOFTENING)
    held = _pairs(blocks[kept])
    proposals = min(count, PROPOSALS)
    for number in range(ROUNDS):
        places = rng.choice(count, proposals, replace=False)
        others = np.minimum(np.searchsorted(rising, rng.random(proposals)), len(weights) - 1)
        slope = 2 * (held - wanted) * dear  # of the squared error, by the count of a cell
        gain = _sums(blocks[kept[places]], slope - dear) - _sums(blocks[others], slope + dear)
        share = FIRST_SHARE + (LAST_SHARE - FIRST_SHARE) * number / ROUNDS
        best, which = gain.topk(min(max(int(share * count), 1), proposals))
        moved = which[best > 0].cpu().numpy()
        held += _pairs(blocks[others[moved]]) - _pairs(blocks[kept[places[moved]]])
        kept[places[moved]] = others[moved]
    return kept


def _pairs(rows: Tensor) -> Tensor:
    return rows.T @ rows


def _sums(rows: Tensor, table: Tensor) -> Tensor:
    """Per row, the sum of the table over all pairs of its labels."""
    return ((rows @ table) * rows).sum(dim=1)
