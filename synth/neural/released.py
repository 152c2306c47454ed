"""What the aggregator knows before training: the released statistics, and the encoding that follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from synth.encoding.bins import cell_weights
from synth.encoding.cells import Cells
from synth.encoding.features import Features, Span
from synth.encoding.mixtures import fit_cells
from synth.encoding.number_bins import as_bins, cut
from synth.encoding.scales import Floats
from synth.interface import Arrays
from synth.neural.question import FREQUENCIES, SHARES
from synth.neural.regime import Weighting
from synth.plan import Plan
from synth.statistics.histograms import Statistics
from synth.statistics.similarity import party_shares, similarity_weights

RAREST = 1e-6  # no released share is taken for an exact 0 in a logarithm


@dataclass(frozen=True, eq=False)
class Released:
    statistics: Statistics
    probabilities: Mapping[str, Floats]  # of every column's cells
    features: Features

    @classmethod
    def of(
        cls, plan: Plan, statistics: Statistics, bins: int | None = None, features: Features | None = None
    ) -> Released:
        """Numbers in at most so many bins. None: in mixtures, fitted to the histograms unless the parties averaged
        some. A run that has an encoding already keeps it."""
        cells, sigma = statistics.cells, float(np.sqrt(statistics.variance))
        probabilities = cells.probabilities(statistics.counts, sigma)
        if features is None and bins is not None:
            features = Features(plan.modelled, {}, cut(*statistics.finest, sigma, bins))
        elif features is None:
            mixtures = statistics.mixtures
            fitted = mixtures or {name: fit_cells(cells, name, probabilities[name]) for name in cells.scales}
            features = Features(plan.modelled, fitted)
        return cls(statistics, probabilities, features)

    @cached_property
    def numbers(self) -> tuple[Cells, Mapping[str, Floats]]:
        """What drawn numbers are fitted to: cells, and how the rows of every column spread over them. Bins need the
        finest, for they say nothing of what is inside."""
        if not self.features.cuts:
            return self.statistics.cells, self.probabilities
        cells, counts = self.statistics.finest
        weights = cell_weights(as_bins(cells, self.features.cuts), counts, float(np.sqrt(self.statistics.variance)))
        return cells, cells.split(weights)

    @property
    def frequencies(self) -> dict[str, Floats]:
        """Of the discrete columns' labels."""
        return {span.column: self.probabilities[span.column] for span in self.features.discrete_spans}

    @cached_property
    def block_shares(self) -> dict[int, Tensor]:
        """Released frequencies of every one-hot block, by its start, none of them 0."""
        spans = self.features.spans
        return {span.start: torch.as_tensor(np.maximum(self.shares(span), RAREST)).float() for span in spans}

    @property
    def biases(self) -> Tensor:
        """[row width]: raw outputs whose softmax is the released frequencies, and 0 for each α."""
        spans = self.features.spans
        logs = [torch.zeros(1) if s.kind == "alpha" else self.block_shares[s.start].log() for s in spans]
        return torch.cat(logs)

    def shares(self, span: Span) -> Floats:
        """Released frequencies of a block's entries; a missing number is the last."""
        released = self.probabilities[span.column]
        if span.column in self.features.cuts:
            cells, spread = self.numbers
            held = as_bins(cells, self.features.cuts).fold(span.column, spread[span.column])
            return held / held.sum() if held.sum() > 0 else np.full(span.width, 1 / span.width)
        if span.kind == "mode":
            weights = self.features.mixtures[span.column].weights
            missing = released[-1:] if span.width > len(weights) else released[:0]
            return np.append(weights * (1 - missing.sum()), missing)
        return released

    def asked(self, plan: Plan, weighting: Weighting) -> Arrays:
        """What every ask carries besides the weights."""
        frequencies = {FREQUENCIES + name: shares for name, shares in self.frequencies.items()}
        return self.features.to_arrays() | frequencies | self._shares(plan, weighting)

    def _shares(self, plan: Plan, weighting: Weighting) -> Arrays:
        """Every party's weight, where the plan weights by similarity."""
        if weighting == "rows":
            return {}
        statistics, rows = self.statistics, {party.name: party.rows for party in plan.parties}
        sigma = float(np.sqrt(statistics.variance / len(statistics.by_party)))
        weights = similarity_weights(statistics.cells, statistics.by_party, sigma, rows)
        found = dict(zip(statistics.by_party, weights.tolist(), strict=True))
        return {SHARES: party_shares(plan, found)}
