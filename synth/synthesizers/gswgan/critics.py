"""Critics of single rows, and the sum of their slopes where the generator has made rows up.

The critic of row r, in closed form, without training and without memory: D(x) = Σ over pairs of different blocks c, c'
of ⟨r_c, x_c⟩ ⟨r_c', x_c'⟩, rows centred by the released shares and scaled. Summed over all rows, less what the
generator makes, which the aggregator knows, it is the best critic among the quadratic forms: the witness of the maximum
mean discrepancy whose kernel is that product. Its slope at a made-up row x is W x with W = Σ r rᵀ, zero within blocks.

What leaves is S = [made-up rows, row width] of slopes of all critics. A row adds its own critic's slopes, as one vector
of bounded length, whatever else is there: one row more moves S by at most `limit`. So no shards and no secret draws of
critics are needed, and no critic outlives an ask.

*Rounding.* In units u = 2⁻⁵³, for n rows of width d, with B the product of norms that bounds every partial sum of a
row's slopes (`_bound`) and CANCELLING = K = 2⁴: a row's norm is taken for no less than B / K, so its square errs by at
most 2 (d + 16) K² u, and the norms of what is added up for a row are at most K limits. For n d ≤ 2²⁸ and n ≤ 2²⁰, clip
factors move the sum by less than 2⁻¹⁵ limits and sums in pieces of 2¹² rows by less than 2⁻¹⁵: within the 2⁻¹⁴ that
`lattice_sensitivity` has for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from synth.encoding.features import Features
from synth.encoding.records import Records
from synth.errors import PrivacyError
from synth.neural.central import Ints, across_blocks, one_hot
from synth.privacy.dpsgd import NoisySum, StepPrivacy, added
from synth.privacy.noise import NoiseSource

SCALE_POWER = 0.25  # a label of share p is scaled by p to minus this: rare ones speak up, but not all at once
RAREST = 1e-3  # share below which labels are scaled alike
ROWS_AT_ONCE = 1 << 12
CANCELLING = 2.0**4
MOST_ROWS, MOST_ENTRIES = 1 << 20, 1 << 28  # of a party


class RowCritics:
    """What all critics share: the made-up rows of an ask, and how loud a critic may be. All of it is public."""

    def __init__(self, features: Features, shares: Tensor, labels: Ints, loudest: float) -> None:
        self.features, self.shares = features, shares.double()
        self.scale = self.shares.clamp_min(RAREST) ** -SCALE_POWER
        self.made_up = self.scaled(one_hot(features, labels))  # [made-up rows, row width]
        self.gram = self.made_up.T @ self.made_up
        self.bounds = self.made_up.abs().T @ self.made_up.abs()
        self.limit = loudest * float(self._squared_norms(self.made_up).mean().sqrt())

    def scaled(self, rows: Tensor) -> Tensor:
        return (rows.double() - self.shares) * self.scale

    def clipped(self, rows: Tensor, clip: bool = True) -> Tensor:
        """[row width, row width]: W of these encoded rows, each with a factor that keeps its slopes within the limit;
        in limits."""
        critics = self.scaled(rows)
        factors = torch.ones(len(critics), dtype=torch.float64)
        if clip:
            least = self._bound(critics) / CANCELLING
            norms = torch.maximum(self._squared_norms(critics).sqrt(), least)
            factors = (self.limit / norms.clamp_min(self.limit)).clamp(max=1.0)
        return critics.T @ (critics * factors[:, None]) / self.limit

    def slopes(self, weights: Tensor) -> Tensor:
        """[made-up rows × row width], flat: of the critic with these W."""
        across = across_blocks(self.features.spans, self.features.width).double()
        return (self.made_up @ (weights * across)).ravel()

    def _squared_norms(self, critics: Tensor) -> Tensor:
        """[critics]: of the slopes of each at all made-up rows, from the gram matrix of these alone: Σ over blocks of
        |r_c|² Σ over rows of (⟨r, x⟩ - ⟨r_c, x_c⟩)²."""
        heard = critics @ self.gram
        every = (critics * heard).sum(1)
        total = torch.zeros(len(critics), dtype=torch.float64)
        for span in self.features.spans:
            block = critics[:, span.slice]
            own = ((block @ self.gram[span.slice, span.slice]) * block).sum(1)
            others = every - 2 * (block * heard[:, span.slice]).sum(1) + own
            total += block.square().sum(1) * others.clamp_min(0.0)
        return total

    def _bound(self, critics: Tensor) -> Tensor:
        """[critics]: of the same, had nothing cancelled."""
        loud = critics.abs()
        return ((loud @ self.bounds) * loud).sum(1).sqrt() * critics.square().sum(1).sqrt()


@dataclass
class PrivateSlopes(NoisySum):
    """The slopes of all critics of a party's rows, summed, with its share of the noise."""

    privacy: StepPrivacy
    source: NoiseSource

    def clipped(self, what: RowCritics, *batch: Records) -> Tensor:
        (records,) = batch
        return what.slopes(summed(what, records))


def summed(critics: RowCritics, records: Records, clip: bool = True) -> Tensor:
    """W over all rows of a party."""
    width = critics.features.width
    if clip and (len(records) > MOST_ROWS or len(records) * width > MOST_ENTRIES):
        raise PrivacyError("a party has more rows than rounding is bounded for; use another synthesizer")

    def pieces() -> Iterator[Tensor]:
        luck = np.random.default_rng(0)  # numbers are in bins: no mode is drawn
        for start in range(0, len(records), ROWS_AT_ONCE):
            piece = records.take(np.arange(start, min(start + ROWS_AT_ONCE, len(records))))
            yield critics.clipped(torch.from_numpy(critics.features.encode(piece, luck)), clip)

    return added(pieces(), torch.zeros(width, width, dtype=torch.float64))
