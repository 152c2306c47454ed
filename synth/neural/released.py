"""What the aggregator knows before training: the released statistics, and the encoding that follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from synth.encoding.features import Features
from synth.encoding.mixtures import fit_cells
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
    def of(cls, plan: Plan, statistics: Statistics, features: Features | None = None) -> Released:
        """Mixtures are fitted to the histograms unless the parties averaged some, or a run already has them."""
        cells = statistics.cells
        probabilities = cells.probabilities(statistics.counts, float(np.sqrt(statistics.variance)))
        if features is None:
            mixtures = statistics.mixtures
            fitted = mixtures or {name: fit_cells(cells, name, probabilities[name]) for name in cells.scales}
            features = Features(plan.modelled, fitted)
        return cls(statistics, probabilities, features)

    @property
    def frequencies(self) -> dict[str, Floats]:
        """Of the discrete columns' labels."""
        return {span.column: self.probabilities[span.column] for span in self.features.discrete_spans}

    @cached_property
    def block_shares(self) -> dict[int, Tensor]:
        """Released frequencies of every one-hot block, by its start; a missing number is the last mode."""
        shares = {}
        for span in self.features.spans:
            released = self.probabilities[span.column]
            if span.kind == "mode":
                weights = self.features.mixtures[span.column].weights
                missing = released[-1:] if span.width > len(weights) else released[:0]
                released = np.append(weights * (1 - missing.sum()), missing)
            shares[span.start] = torch.from_numpy(np.maximum(released, RAREST)).float()
        return shares

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
