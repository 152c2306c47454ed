"""From a trained network to a table, without calling anybody: make, choose, fit to the histograms.

Several candidates are made per row and kept in proportion to the exponential of their score, which a family gives as
the log-ratio of the density of real rows to that of made-up rows, if it has one (importance resampling, as in Azadi et
al., ICLR 2019). The weights are then raked until every discrete column matches its released histogram, rows are chosen
such that pairs of labels are as in the candidates, and each number is moved, in order, onto its released histogram. A
published protocol keeps every candidate as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from synth.encoding.features import Span
from synth.encoding.records import Records
from synth.errors import InputError
from synth.neural.choosing import chosen_by_pairs
from synth.neural.fitting import fit_numbers, raked
from synth.neural.released import Released
from synth.neural.streams import Stream
from synth.schema import Schema

CHUNK = 10_000  # candidates made at once
BLOCK = 50_000  # rows chosen at once, which bounds memory
FEWEST_CANDIDATES = 5_000  # from which even a handful of rows is chosen
LARGEST_SCORE = 6.0  # no candidate is preferred by more than e to this power
REFERENCE_ROWS = 20_000

Codes = Mapping[str, int]  # labels that discrete columns are fixed to
Draw = Callable[[int, Codes, Stream], tuple[Tensor, Tensor]]  # [count, row width] rows that honour the codes; scores


@dataclass
class Drawing:
    """A frozen model that draws rows."""

    draw: Draw
    released: Released
    candidates: int  # rows made per row kept
    fitted: bool  # whether rows are fitted to the histograms

    def sample(self, rows: int, seed: int, codes: Codes) -> Records:
        stream = Stream(seed)
        blocks = [self._made(min(BLOCK, rows - start), codes, stream) for start in range(0, rows, BLOCK)]
        records = Records.concat(blocks)
        if not self.fitted:
            return records
        reference = self._reference if codes or rows < REFERENCE_ROWS else records
        return fit_numbers(records, reference, *self.released.numbers, np.random.default_rng(seed))

    @cached_property
    def _reference(self) -> Records:
        """Unconditional rows that say how far the model's numbers are off, for few rows and those of a kind."""
        return self._made(REFERENCE_ROWS, {}, Stream(0))

    @torch.no_grad()
    def _made(self, rows: int, codes: Codes, stream: Stream) -> Records:
        features = self.released.features
        if self.candidates == 1:
            return features.decode(self._candidates(rows, codes, stream)[0].cpu().numpy())
        matrix, score = self._candidates(max(rows * self.candidates, FEWEST_CANDIDATES), codes, stream)
        weights = np.exp(score.double().cpu().numpy())
        blocks = [s for s in features.spans if s.kind == "label" or s.column in features.cuts]
        if self.fitted and not codes:
            labels = {s.column: matrix[:, s.slice].argmax(1).cpu().numpy() for s in blocks}
            weights = raked(weights, labels, {s.column: self.released.shares(s) for s in blocks})
        places = [place for s in blocks for place in range(s.start, s.start + s.width)]
        kept = chosen_by_pairs(matrix[:, places], weights, rows, stream.rng)
        return features.decode(matrix[kept].cpu().numpy())

    def _candidates(self, count: int, codes: Codes, stream: Stream) -> tuple[Tensor, Tensor]:
        pieces = [self.draw(min(CHUNK, count - start), codes, stream) for start in range(0, count, CHUNK)]
        rows, scores = (torch.cat(parts) for parts in zip(*pieces, strict=True))
        return rows, scores.clamp(-LARGEST_SCORE, LARGEST_SCORE)


def drawn(raw: Tensor, spans: Sequence[Span], codes: Codes, stream: Stream, likeliest: bool = False) -> Tensor:
    """Rows of a network's raw output: each α by tanh, each block one-hot, drawn from its softmax unless a code fixes
    it. The largest of a block with Gumbel noise is such a draw; `likeliest` takes the largest without, as some papers
    do."""
    noisy = raw if likeliest else raw + stream.gumbel(*raw.shape)
    rows = torch.zeros_like(raw)
    for span in spans:
        if span.kind == "alpha":
            rows[:, span.slice] = torch.tanh(raw[:, span.slice])
        else:
            fixed = span.kind == "label" and span.column in codes
            label = codes[span.column] if fixed else noisy[:, span.slice].argmax(1)
            rows[torch.arange(len(raw)), span.start + label] = 1.0
    return rows


def chance(raw: Tensor, spans: Sequence[Span], codes: Codes) -> Tensor:
    """[rows]: the log of how likely each raw output makes the labels that are fixed, beside the likeliest; drawn rows
    are kept in proportion to it, which makes them draws given these labels."""
    score = raw.new_zeros(len(raw))
    for span in spans:
        if span.kind == "label" and span.column in codes:
            score = score + raw[:, span.slice].log_softmax(1)[:, codes[span.column]]
    return score - score.max() if len(score) else score


def codes_of(table: Schema, where: Mapping[str, str]) -> dict[str, int]:
    """The labels that rows are to have, as codes."""
    discrete, codes = table.discrete, {}
    for column, label in where.items():
        if column not in discrete:
            raise InputError(f"'{column}' is not a discrete column; rows can be fixed by {', '.join(discrete)}.")
        if label not in discrete[column].labels:
            raise InputError(f"column '{column}' has no label '{label}'; choose one that the schema declares.")
        codes[column] = discrete[column].labels.index(label)
    return codes
