"""Records as the matrix a network sees, and back (mode-specific normalisation, Xu et al. 2019).

A discrete column is a one-hot block. A numeric column is one mode of its mixture, drawn once per row and written as a
one-hot block, and α, the place within that mode: value = mean + 4 · α · std. A missing number is one mode more. Where
a column has cuts instead of a mixture, its modes are the bins between them and there is no α.

NOTE[DIFF]: CTGAN may draw, with probability 1e-6 and more, a mode that cannot reach the value within |α| ≤ 0.99 and
then cuts the value off. Here a mode that reaches is always preferred, so a value is cut only if no mode reaches it.
The matrix is float32: it keeps 7 digits of a value relative to the width of its mode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
import numpy.typing as npt

from synth.encoding.mixing import Words, uniforms
from synth.encoding.mixtures import Mixture
from synth.encoding.records import Records, Values
from synth.encoding.scales import Floats, code_count, scale_of
from synth.errors import ProtocolError
from synth.interface import Arrays
from synth.schema import Boolean, Categorical, NumericColumn, Schema

Matrix = npt.NDArray[np.float32]
WIDTHS = 4.0  # α spans ± this many standard deviations
REACH = 0.99  # largest |α| that is written; tanh attains no 1
PREFIX, CUTS = "mixture/", "cuts/"


@dataclass(frozen=True)
class Span:
    """Neighbouring matrix columns with one meaning: `alpha` (one number, tanh) or a one-hot `mode` or `label` block."""

    column: str
    kind: Literal["alpha", "mode", "label"]
    start: int
    width: int

    @property
    def slice(self) -> slice:
        return slice(self.start, self.start + self.width)


class Features:
    """The layout of the matrix under one schema, and one mixture or the cuts of bins per numeric column."""

    def __init__(
        self, schema: Schema, mixtures: Mapping[str, Mixture], cuts: Mapping[str, Floats] = MappingProxyType({})
    ) -> None:
        if absent := sorted(set(schema.numeric) - set(mixtures) - set(cuts)):
            raise ProtocolError(
                f"no mixture for {', '.join(absent)}: run the statistics of this plan again before training."
            )
        self.schema = schema
        self.cuts = {name: cuts[name] for name in schema.numeric if name in cuts}
        self.mixtures = {name: mixtures[name] for name in schema.numeric if name not in cuts}
        self.scales = {name: scale_of(column, name) for name, column in schema.numeric.items()}
        self.spans = self._layout()

    @property
    def width(self) -> int:
        return self.spans[-1].start + self.spans[-1].width

    @property
    def discrete_spans(self) -> list[Span]:
        """The label blocks; a condition is a one-hot vector over them in this order, without gaps."""
        return [span for span in self.spans if span.kind == "label"]

    @property
    def condition_starts(self) -> dict[str, int]:
        """Where each discrete column begins within a condition."""
        starts, start = {}, 0
        for span in self.discrete_spans:
            starts[span.column] = start
            start += span.width
        return starts

    @property
    def condition_width(self) -> int:
        return sum(span.width for span in self.discrete_spans)

    def encode(self, records: Records, rng: np.random.Generator) -> Matrix:
        """One row per record; draws each number's mode. Every column has a stream of its own, so that one row more
        changes no other row's modes."""
        streams = rng.spawn(len(self.spans))
        return self._matrix(records, lambda span: streams[span].random(len(records)))

    def encode_some(self, records: Records, numbers: npt.NDArray[np.int64], seed: Words) -> Matrix:
        """The same for some rows of a table, whose modes are drawn by the rows' numbers: always the same ones."""
        return self._matrix(records, lambda span: uniforms(seed, span, numbers))

    def _matrix(self, records: Records, luck: Callable[[int], Floats]) -> Matrix:
        """`luck` has a number in [0, 1) for every row, for each span that needs it."""
        matrix: Matrix = np.zeros((len(records), self.width), dtype=np.float32)
        rows = np.arange(len(records))
        for number, span in enumerate(self.spans):
            values = records.columns[span.column]
            if span.kind == "label":
                matrix[rows, span.start + values.astype(np.int64)] = 1.0
            elif span.column in self.cuts:
                matrix[rows, span.start + self._bin(span.column, values.astype(np.float64))] = 1.0
            elif span.kind == "alpha":
                alpha, mode = _place(values.astype(np.float64), self.mixtures[span.column], luck(number))
                matrix[:, span.start] = alpha
                matrix[rows, span.start + 1 + mode] = 1.0
        return matrix

    def decode(self, matrix: npt.NDArray[np.floating]) -> Records:
        """The records nearest to a network's output: the largest entry of each block, numbers within their bounds."""
        columns: dict[str, Values] = {}
        alpha: Floats = np.zeros(len(matrix))
        for span in self.spans:
            block = matrix[:, span.slice]
            if span.kind == "alpha":
                alpha = np.clip(block[:, 0].astype(np.float64), -1.0, 1.0)
            elif span.column in self.cuts:
                columns[span.column] = self._middle(span.column, block.argmax(axis=1))
            elif span.kind == "mode":
                columns[span.column] = self._value(span.column, alpha, block.argmax(axis=1))
            else:
                columns[span.column] = block.argmax(axis=1).astype(np.int64)
        return Records(columns)

    def to_arrays(self) -> Arrays:
        """The mixtures (weights, means, standard deviations as rows) and cuts; with the schema they fix the whole
        encoding."""
        mixtures = {PREFIX + name: np.stack([m.weights, m.means, m.stds]) for name, m in self.mixtures.items()}
        return mixtures | {CUTS + name: cuts for name, cuts in self.cuts.items()}

    @classmethod
    def from_arrays(cls, schema: Schema, arrays: Arrays) -> Features:
        """The inverse of `to_arrays`; other entries are left alone."""
        found = {name: Mixture(*arrays[PREFIX + name]) for name in schema.numeric if PREFIX + name in arrays}
        return cls(schema, found, {name: arrays[CUTS + name] for name in schema.numeric if CUTS + name in arrays})

    def _layout(self) -> list[Span]:
        spans: list[Span] = []
        start = 0
        for name, column in self.schema.released.items():
            for kind, width in self._blocks(name, column):
                spans.append(Span(name, kind, start, width))
                start += width
        return spans

    def _blocks(
        self, name: str, column: Categorical | Boolean | NumericColumn
    ) -> list[tuple[Literal["alpha", "mode", "label"], int]]:
        if isinstance(column, Categorical | Boolean):
            return [("label", code_count(column))]
        if name in self.cuts:
            return [("mode", len(self.cuts[name]) + 1 + int(column.missing))]
        return [("alpha", 1), ("mode", len(self.mixtures[name]) + int(column.missing))]

    def _bin(self, name: str, values: Floats) -> npt.NDArray[np.int64]:
        missing = np.isnan(values)
        found = np.searchsorted(self.cuts[name], np.where(missing, 0.0, values), side="right")
        return np.where(missing, len(self.cuts[name]) + 1, found)

    def _middle(self, name: str, found: npt.NDArray[np.int64]) -> Floats:
        """A value of each bin; drawing moves it to where the released histogram has values of this rank."""
        scale = self.scales[name]
        edges = np.concatenate([[scale.lowest], self.cuts[name], [scale.highest]])
        middles = scale.snap((edges[1:] + edges[:-1]) / 2)
        return np.append(middles, np.nan)[found]

    def _value(self, name: str, alpha: Floats, mode: npt.NDArray[np.int64]) -> Floats:
        mixture = self.mixtures[name]
        missing = mode == len(mixture)
        known = np.where(missing, 0, mode)
        value = mixture.means[known] + WIDTHS * alpha * mixture.stds[known]
        return np.where(missing, np.nan, self.scales[name].snap(value))


def _place(values: Floats, mixture: Mixture, luck: Floats) -> tuple[Floats, npt.NDArray[np.int64]]:
    """α and mode of every value; the mode is drawn from its posterior, the extra last mode means missing."""
    missing = np.isnan(values)
    known = np.where(missing, mixture.means[0], values)
    likely = mixture.log_densities(known)
    posterior = np.exp(likely - likely.max(axis=1, keepdims=True))
    posterior = posterior / posterior.sum(axis=1, keepdims=True) + 1e-6
    offset = (known[:, None] - mixture.means) / (WIDTHS * mixture.stds)
    reaching = np.abs(offset) <= REACH
    beyond = np.abs(known[:, None] - mixture.means) - REACH * WIDTHS * mixture.stds
    nearest = beyond == beyond.min(axis=1, keepdims=True)
    posterior *= np.where(reaching.any(axis=1, keepdims=True), reaching, nearest)
    cumulative = np.cumsum(posterior, axis=1)
    mode = (cumulative <= luck[:, None] * cumulative[:, -1:]).sum(axis=1)
    mode = np.minimum(mode, len(mixture) - 1)
    alpha = np.clip(np.take_along_axis(offset, mode[:, None], axis=1)[:, 0], -REACH, REACH)
    return np.where(missing, 0.0, alpha), np.where(missing, len(mixture), mode)
