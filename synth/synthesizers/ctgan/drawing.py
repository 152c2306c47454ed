"""From trained networks to a table, without calling anybody: make, choose, fit to the histograms.

Several candidates are made per row. The discriminator's score is the log-ratio of the density of real rows to that of
made-up rows, so keeping candidates in proportion to its exponential corrects what the generator has not learnt yet
(importance resampling, as in Azadi et al., ICLR 2019). The weights are then raked until every discrete column matches
its released histogram, and each number is moved, in order, onto its released histogram. All of it is post-processing.

The published profile keeps every candidate as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from synth.encoding.cells import Cells
from synth.encoding.features import Features
from synth.encoding.records import Records
from synth.encoding.scales import Floats
from synth.synthesizers.ctgan.conditions import Conditions
from synth.synthesizers.ctgan.networks import Discriminator, Generator, drawn
from synth.synthesizers.ctgan.streams import Stream

CHUNK = 10_000  # candidates made at once
BLOCK = 50_000  # rows chosen at once, which bounds memory
FEWEST_CANDIDATES = 5_000  # from which even a handful of rows is chosen
LARGEST_SCORE = 6.0  # no candidate is preferred by more than e to this power
RAKING_ROUNDS = 20
REFERENCE_ROWS = 20_000
QUANTILES = 1 << 16


@dataclass
class Drawing:
    """A frozen model that draws rows."""

    generator: Generator
    discriminator: Discriminator
    features: Features
    conditions: Conditions
    cells: Cells
    probabilities: Mapping[str, Floats]  # released, by column
    candidates: int
    scored: bool  # whether the discriminator's score is a log density ratio
    fitted: bool  # whether rows are fitted to the histograms

    def sample(self, rows: int, seed: int, codes: Mapping[str, int]) -> Records:
        stream = Stream(seed)
        blocks = [self._made(min(BLOCK, rows - start), codes, stream) for start in range(0, rows, BLOCK)]
        records = Records.concat(blocks)
        if not self.fitted:
            return records
        reference = self._reference if codes or rows < REFERENCE_ROWS else records
        return fit_numbers(records, reference, self.cells, self.probabilities, np.random.default_rng(seed))

    @cached_property
    def _reference(self) -> Records:
        """Unconditional rows that say how far the generator's numbers are off, for few rows and those of a kind."""
        return self._made(REFERENCE_ROWS, {}, Stream(0))

    @torch.no_grad()
    def _made(self, rows: int, codes: Mapping[str, int], stream: Stream) -> Records:
        if self.candidates == 1:
            return self.features.decode(self._candidates(rows, codes, stream)[0].numpy())
        matrix, score = self._candidates(max(rows * self.candidates, FEWEST_CANDIDATES), codes, stream)
        weights = np.exp(score.double().numpy()) if self.scored else np.ones(len(matrix))
        if self.fitted and not codes:
            labels = {s.column: matrix[:, s.slice].argmax(1).numpy() for s in self.features.discrete_spans}
            weights = raked(weights, labels, self.probabilities)
        kept = _chosen(weights, rows, stream.rng)
        return self.features.decode(matrix.numpy()[kept])

    def _candidates(self, count: int, codes: Mapping[str, int], stream: Stream) -> tuple[Tensor, Tensor]:
        """[count, row width] rows with one-hot blocks that honour `codes`, and their scores."""
        self.generator.eval()
        pieces, scores = [], []
        for start in range(0, count, CHUNK):
            asked = self.conditions.fixed(codes, min(CHUNK, count - start), stream)
            rows = drawn(self.generator(asked, stream), self.features.spans, stream)
            for span in self.features.discrete_spans:
                if span.column in codes:
                    rows[:, span.slice] = 0.0
                    rows[:, span.start + codes[span.column]] = 1.0
            pieces.append(rows)
            scores.append(self.discriminator(rows, asked) if self.scored else torch.zeros(len(rows)))
        return torch.cat(pieces), torch.cat(scores).clamp(-LARGEST_SCORE, LARGEST_SCORE)


def settle_batch_norm(generator: Generator, conditions: Conditions, batches: int = 20) -> None:
    """No party sends the statistics of its made-up rows, so they are estimated here on fresh ones."""
    norms = [part for part in generator.modules() if isinstance(part, torch.nn.BatchNorm1d)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a plain mean over the batches below
    generator.train()
    stream = Stream(0)
    with torch.no_grad():
        for _ in range(batches):
            generator(conditions.draw(1000, stream), stream)
    generator.eval()


def raked(weights: Floats, labels: Mapping[str, npt.NDArray[np.int64]], shares: Mapping[str, Floats]) -> Floats:
    """Weights nearest to the given ones under which every column has the wanted shares (iterative proportional
    fitting); labels that no candidate has cannot be had."""
    weights = weights / weights.sum()
    for _ in range(RAKING_ROUNDS):
        for column, codes in labels.items():
            held = np.bincount(codes, weights, minlength=len(shares[column]))
            wanted = np.where(held > 0, shares[column], 0.0)
            factors = np.divide(wanted, held, out=np.zeros_like(held), where=held > 0)
            weights = weights * factors[codes]
        weights = weights / weights.sum()
    return weights


def fit_numbers(
    records: Records, reference: Records, cells: Cells, probabilities: Mapping[str, Floats], rng: np.random.Generator
) -> Records:
    """Move each number, keeping the order, to the released histogram's value at the place it has in `reference`."""
    columns = dict(records.columns)
    for name in cells.scales:
        values, known = columns[name].astype(np.float64), np.sort(_present(reference.columns[name]))
        present = ~np.isnan(values)
        if len(known) == 0 or not present.any():
            continue
        below, upto = (np.searchsorted(known, values[present], side=side) for side in ("left", "right"))
        place = (below + rng.random(len(below)) * (upto - below)) / len(known)
        quantiles = cells.spread(name, probabilities[name], QUANTILES)
        values[present] = quantiles[np.minimum((place * QUANTILES).astype(np.int64), QUANTILES - 1)]
        columns[name] = values
    return Records(columns)


def _present(values: npt.NDArray[np.generic]) -> Floats:
    numbers = values.astype(np.float64)
    return numbers[~np.isnan(numbers)]


def _chosen(weights: Floats, count: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """`count` positions, each as often as its weight says to within one (systematic sampling), in random order."""
    order = rng.permutation(len(weights))
    cumulative = np.cumsum(weights[order])
    marks = (np.arange(count) + rng.random()) / count * cumulative[-1]
    found = np.minimum(np.searchsorted(cumulative, marks), len(weights) - 1)
    return rng.permutation(order[found])
