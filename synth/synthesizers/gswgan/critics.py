"""Critics of single rows, and the sum of their slopes where the generator has made rows up.

The critic of row r, in closed form, without training and without memory: D(x) = Σ over pairs of different blocks c, c'
of ⟨r_c, x_c⟩ ⟨r_c', x_c'⟩, rows centred by the released shares and scaled. Summed over all rows, less what the
generator makes, which the aggregator knows, it is the best critic among the quadratic forms: the witness of the maximum
mean discrepancy whose kernel is that product. Its slope at a made-up row x is W x with W = Σ r rᵀ, zero within blocks.

What leaves is S = [made-up rows, row width] of slopes of all critics. A row adds its own critic's slopes, as one vector
of bounded length, whatever else is there: one row more moves S by at most `limit`. So no shards and no secret draws of
critics are needed, and no critic outlives an ask.

*Rounding.* One row more must not move what all others add, not by a bit: of n rows that would be n bits. So everything
that is summed is whole numbers. A label is seen as a vector of whole 2⁻⁸ (its look). A row's clip factor is a function
of its labels, looked up and added in one order (`factors`), and rounded down to whole 2⁻²¹; sums of factors over pairs
of labels are exact for 2³¹ rows, in any order. Slopes are a linear map of these sums, exact digit by digit (`slopes`).
What is rounded is the sum of the digits. In units u = 2⁻⁵³, with B the product of norms that bounds every partial sum
of a row's slopes (`_bound`): a row's norm is taken for no less than B / K, K = CANCELLING = 2⁴, so all terms' norms add
up to at most n K limits, and five roundings, for both tables, are 10 n K u < 1.3 · 2⁻¹⁵ limits for n ≤ 2³¹, more rows
than any table in memory has. The row's own norm errs by (b² + m + 9) K² u < 2⁻²⁰ for b ≤ 2¹² blocks and m ≤ 2¹⁵ made-up
rows. Both together are within the 2⁻¹⁴ that `lattice_sensitivity` has for it. How many rows there are is no reason to
refuse.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from synth.encoding.features import Features
from synth.encoding.records import Records
from synth.errors import ProtocolError
from synth.neural.central import Ints, across_blocks, one_hot
from synth.privacy.dpsgd import NoisySum, StepPrivacy, added
from synth.privacy.noise import NoiseSource

SCALE_POWER = 0.25  # a label of share p is scaled by p to minus this: rare ones speak up, but not all at once
RAREST = 1e-3  # share below which labels are scaled alike
ROWS_AT_ONCE = 1 << 12
CANCELLING = 2.0**4
LOOK, FACTOR = 2.0**8, 2.0**21  # units in 1: of a label's vector, of a clip factor
WHOLE_BITS, FLOAT_BITS = 62, 53  # of what is exact in an int64 and in a float64


class RowCritics:
    """What all critics share: the made-up rows of an ask, and how loud a critic may be. All of it is public."""

    def __init__(self, features: Features, shares: Tensor, labels: Ints, loudest: float) -> None:
        self.features, self.shares = features, shares.double()
        self.scale = self.shares.clamp_min(RAREST) ** -SCALE_POWER
        self.across = across_blocks(features.spans, features.width).double()
        self.own, self.centre = (LOOK * self.scale).round(), (LOOK * self.scale * self.shares).round()
        looks = (1 - self.across) * (self.own.diag() - self.centre)  # [labels, row width], whole: each in its block
        hot = one_hot(features, labels).double()
        whole = hot @ looks
        self.made_up = whole / LOOK  # [made-up rows, row width]
        self.heard = looks @ whole.T  # [labels, made-up rows]: what a label alone has to do with a row
        loud = looks.abs() @ whole.abs().T
        self.squares, self.gram, self.bounds = looks.square().sum(1), self.heard @ self.heard.T, loud @ loud.T
        self.limit = loudest * float(self._squared_norms(self.places(hot)).mean().sqrt())
        self.digit_bits = self._digit_bits()

    def places(self, rows: Tensor) -> Tensor:
        """[rows, blocks]: where the label of each block stands among all labels, of encoded rows."""
        return torch.stack([span.start + rows[:, span.slice].argmax(1) for span in self.features.spans], dim=1)

    def factors(self, places: Tensor) -> Tensor:
        """[rows], whole: what keeps the slopes of each row's critic within the limit. Looked up and added label by
        label, in one order: the same to the last bit wherever a row stands and whoever is beside it."""
        norms = torch.maximum(self._squared_norms(places).sqrt(), self._bound(places) / CANCELLING)
        return (FACTOR * (self.limit / norms.clamp_min(self.limit))).floor()

    def slopes(self, sums: Tensor) -> Tensor:
        """[made-up rows × row width], flat, in limits: of all critics together, from the sums of their factors."""
        bits, left = self.digit_bits, (sums * self.across).long()
        unit = 1 / (FACTOR * LOOK**3 * self.limit)
        pieces = (
            self._of_digit(left >> place & (1 << bits) - 1).double() * (2.0**place * unit)
            for place in range(0, FLOAT_BITS, bits)
        )
        return added(pieces, torch.zeros_like(self.made_up)).ravel()

    def _of_digit(self, digit: Tensor) -> Tensor:
        """[made-up rows, row width]: looksᵀ · digit · heard, exact. A label's look is an entry of its own less what all
        labels of its block share, so the first product is an entry less the sum over a block."""
        heard = (digit.double() @ self.heard).long()  # [labels, made-up rows]
        of_block = torch.cat([heard[span.slice].sum(0).expand(span.width, -1) for span in self.features.spans])
        return (self.own.long()[:, None] * heard - self.centre.long()[:, None] * of_block).T

    def _digit_bits(self) -> int:
        """Of sums of factors, so that every product and sum of `_of_digit` is exact; from public numbers."""
        widest = max(span.width for span in self.features.spans)
        product = _bits(self.heard) + self.features.width.bit_length()
        found = min(FLOAT_BITS - product, WHOLE_BITS - product - _bits(self.own) - widest.bit_length())
        if found < 1:
            raise ProtocolError("an ask is about rows that are too wide for exact sums; the plan needs fewer bins")
        return found

    def _squared_norms(self, places: Tensor) -> Tensor:
        """[rows]: of the slopes of each row's critic at all made-up rows x: Σ over blocks of |r_c|² Σ over x of
        (⟨r, x⟩ - ⟨r_c, x_c⟩)²."""
        heard = _looked_up(self.gram, places)
        every, own, total = sum(heard), self.gram.diagonal(), torch.zeros(len(places), dtype=torch.float64)
        for block, here in enumerate(heard):
            labels = places[:, block]
            total = total + self.squares[labels] * (every - 2 * here + own[labels]).clamp_min(0.0)
        return total / LOOK**6

    def _bound(self, places: Tensor) -> Tensor:
        """[rows]: of the same norms, had nothing cancelled."""
        squares = sum(self.squares[places[:, block]] for block in range(places.shape[1]))
        return torch.as_tensor(sum(_looked_up(self.bounds, places)) * squares).sqrt() / LOOK**3


def _looked_up(table: Tensor, places: Tensor) -> list[Tensor]:
    """By block, [rows]: the sum over all blocks of what the table has for the labels of the two."""
    flat, found = table.ravel(), []
    for one in places.T:
        total = torch.zeros(len(places), dtype=torch.float64)
        for other in places.T:
            total = total + flat[one * len(table) + other]
        found.append(total)
    return found


def _bits(whole: Tensor) -> int:
    return int(whole.abs().max()).bit_length()


@dataclass
class PrivateSlopes(NoisySum):
    """The slopes of all critics of a party's rows, summed, with its share of the noise."""

    privacy: StepPrivacy
    source: NoiseSource

    def clipped(self, what: RowCritics, *batch: Records) -> Tensor:
        (records,) = batch
        return what.slopes(summed(what, records))


def summed(critics: RowCritics, records: Records, clip: bool = True) -> Tensor:
    """[labels, labels], whole: for every two labels the factors of all rows that have both; 1 without `clip`."""
    width, luck = critics.features.width, np.random.default_rng(0)  # numbers are in bins: no mode is drawn
    total = torch.zeros(width, width, dtype=torch.float64)
    for start in range(0, len(records), ROWS_AT_ONCE):
        piece = records.take(np.arange(start, min(start + ROWS_AT_ONCE, len(records))))
        rows = torch.from_numpy(critics.features.encode(piece, luck)).double()
        factors = (
            critics.factors(critics.places(rows)) if clip else torch.full((len(rows),), FACTOR, dtype=torch.float64)
        )
        total += rows.T @ (rows * factors[:, None])
    return total
