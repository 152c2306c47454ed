"""Which categories a made-up row must have, and what a real row's own condition is.

Under the rigorous profile nothing here reads private frequencies: conditions of made-up rows follow the released noisy
histograms, and a real row's condition is read off the row after Poisson sampling, so a row influences nothing but its
own term of the gradient. A condition names one random discrete column, and besides always the target.

NOTE[DIFF]: CTGAN conditions on one column. Naming the target as well spends the private steps where the table will be
used, on the dependence of every column on the target.

`TrainingBySampling` is the published way: a category by the logarithm of its exact local frequency, then a row within
it. It voids the accountant's premise (every row joins with the same small probability) and serves benchmarks only.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from synth.encoding.features import Features, Span
from synth.neural.streams import Stream

Floats = npt.NDArray[np.float64]


class Conditions:
    """Conditions over the discrete columns of a feature layout."""

    def __init__(self, features: Features, frequencies: Mapping[str, Floats], target: str | None) -> None:
        self.spans = features.discrete_spans
        self.starts = features.condition_starts
        self.width = features.condition_width
        self.always = [span for span in self.spans if span.column == target]
        self.one_of = [span for span in self.spans if span.column != target]
        self.frequencies = {span.column: frequencies[span.column] for span in self.spans}

    def draw(self, count: int, stream: Stream) -> Tensor:
        """[count, width], by the frequencies."""
        conditions = torch.zeros(count, self.width)
        for span, chosen in self._chosen(count, stream):
            labels = stream.labels(self.frequencies[span.column], len(chosen))
            conditions[chosen, self.starts[span.column] + labels] = 1.0
        return conditions

    def of(self, rows: Tensor, stream: Stream) -> Tensor:
        """Each encoded row's own condition; the column is drawn, the category is the row's."""
        conditions = torch.zeros(len(rows), self.width)
        for span, chosen in self._chosen(len(rows), stream):
            start = self.starts[span.column]
            conditions[chosen, start : start + span.width] = rows[chosen, span.slice]
        return conditions

    def fixed(self, codes: Mapping[str, int], count: int, stream: Stream) -> Tensor:
        """Like `draw`, except that columns in `codes` always have that category, and only they if there are any
        besides the target."""
        conditions = self.draw(count, stream) if set(codes) <= {span.column for span in self.always} else None
        if conditions is None:
            conditions = torch.zeros(count, self.width)
            for span in self.always:
                labels = stream.labels(self.frequencies[span.column], count)
                conditions[torch.arange(count), self.starts[span.column] + labels] = 1.0
        for column, code in codes.items():
            width = len(self.frequencies[column])
            conditions[:, self.starts[column] : self.starts[column] + width] = 0.0
            conditions[:, self.starts[column] + code] = 1.0
        return conditions

    def penalty(self, raw: Tensor, conditions: Tensor) -> Tensor:
        """Mean cross-entropy between what was asked for and the raw blocks: how little the generator listens."""
        total = torch.zeros(())
        for span in self.spans:
            start = self.starts[span.column]
            wanted = conditions[:, start : start + span.width]
            total = total - (wanted * raw[:, span.slice].log_softmax(1)).sum()
        return total / len(raw)

    def _chosen(self, count: int, stream: Stream) -> list[tuple[Span, Tensor]]:
        """Columns and the rows whose condition names them: the target in every row, one other column in each."""
        everyone = torch.arange(count)
        chosen = [(span, everyone) for span in self.always]
        if self.one_of:
            which = stream.integers(len(self.one_of), count)
            chosen += [(span, everyone[which == i]) for i, span in enumerate(self.one_of)]
        return [(span, rows) for span, rows in chosen if len(rows)]


class TrainingBySampling:
    """The published sampler over one party's rows: conditions from exact local log-frequencies, rows to match."""

    def __init__(self, features: Features, rows: Tensor) -> None:
        self.rows = rows
        counts = {span.column: rows[:, span.slice].sum(0).double().cpu().numpy() for span in features.discrete_spans}
        frequencies = {column: np.log1p(count) for column, count in counts.items()}
        self.conditions = Conditions(features, frequencies, target=None)
        self.members = {
            (span.column, label): rows[:, span.start + label].nonzero()[:, 0]
            for span in features.discrete_spans
            for label in range(span.width)
        }

    def batch(self, count: int, stream: Stream) -> tuple[Tensor, Tensor]:
        """[count, …] rows and their conditions, drawn with replacement."""
        conditions = self.conditions.draw(count, stream)
        picked = stream.integers(len(self.rows), count)
        for (column, label), members in self.members.items():
            asking = conditions[:, self.conditions.starts[column] + label].nonzero()[:, 0]
            if len(asking):
                picked[asking] = members[stream.integers(len(members), len(asking))]
        return self.rows[picked], conditions
