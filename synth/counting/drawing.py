"""From a fitted model over bins to rows: conditions go into the model, values come from the histogram, and every row is
checked against the plan's constraints before it is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from synth.constraints import Constraint, Mask, determined, enforce, matches, violations
from synth.counting.placing import placed
from synth.encoding.bins import Bins
from synth.encoding.contingency import Ints
from synth.encoding.records import Records
from synth.encoding.scales import Floats
from synth.errors import InputError
from synth.schema import Schema

ATTEMPTS = 50  # draws to replace rows that break a constraint the model cannot express
FEWEST_AGAIN = 200  # rows drawn again at least: small batches waste more than they save


class Model(Protocol):
    """A distribution over the bins of numbered columns."""

    def sample(self, rows: int, rng: np.random.Generator, given: Mapping[int, Floats] | None = None) -> dict[int, Ints]:
        """The bin of every row in each column; `given` weights the bins of some columns (0 forbids a bin)."""

    def probability(self, given: Mapping[int, Floats]) -> float:
        """The weight of what is given, relative to nothing given."""


@dataclass(frozen=True)
class Drawing:
    """All that turns bins into rows."""

    schema: Schema
    constraints: list[Constraint]
    names: list[str]  # the modelled columns, by number
    bins: Bins
    weights: Floats  # over all cells

    def rows(self, model: Model, rows: int, rng: np.random.Generator, where: dict[str, str]) -> Records:
        masks = self._masks(where)
        given = {self.names.index(name): self._chances(name, mask) for name, mask in masks.items()}
        if given and model.probability(given) <= 0:
            raise InputError("no row can have what 'where' asks for under the plan's constraints; ask for less")
        kept: list[Records] = []
        missing = rows
        for attempt in range(ATTEMPTS):
            wanted = missing if attempt == 0 else max(2 * missing, FEWEST_AGAIN)
            drawn = enforce(self._draw(model, wanted, rng, given, masks), self.constraints, self.schema)
            good = np.flatnonzero(~violations(drawn, self.constraints, self.schema))[:missing]
            kept.append(drawn.take(good))
            missing -= len(good)
            if missing == 0:
                return Records.concat(kept)
        raise InputError(
            f"after {ATTEMPTS} attempts {missing} of {rows} rows still break the plan's constraints: together they "
            "leave almost nothing that the counts support. Check that they are true of the data."
        )

    def _draw(
        self, model: Model, rows: int, rng: np.random.Generator, given: dict[int, Floats], masks: dict[str, Mask]
    ) -> Records:
        found = model.sample(rows, rng, given)
        columns, ranks = {}, self._ranks(found, rng)
        for number, name in enumerate(self.names):
            weights = self.weights[self.bins.cells.slices[name]]
            if name in masks:
                weights = np.where(masks[name], np.maximum(weights, 1e-12), 0.0)
            columns[name] = self.bins.draw(name, found[number], weights, rng, ranks.get(name))
        return Records(columns)

    def _ranks(self, found: dict[int, Ints], rng: np.random.Generator) -> dict[str, Floats]:
        """Of numbers that are related to others, within their bins."""
        numbers = {name: found[place] for place, name in enumerate(self.names) if name in self.schema.numeric}
        missing = {name: int(self.schema.numeric[name].missing) for name in numbers}
        return placed(numbers, {name: self.bins.size(name) - missing[name] for name in numbers}, rng)

    def _chances(self, name: str, mask: Mask) -> Floats:
        """Per bin, the share of its rows in the cells asked for; never 0 where there is such a cell."""
        weights = np.maximum(self.weights[self.bins.cells.slices[name]], 1e-12)
        return self.bins.fold(name, weights * mask) / self.bins.fold(name, weights)

    def _masks(self, where: dict[str, str]) -> dict[str, Mask]:
        """Cells of modelled columns that satisfy the conditions."""
        masks: dict[str, Mask] = {}
        relations = determined(self.constraints)
        for name, label in where.items():
            if name not in self.schema.discrete or label not in self.schema.discrete[name].labels:
                raise InputError(
                    f"'where' can fix a categorical or boolean column to one of its labels; '{name}' is not"
                )
            source = relations[name].of if name in relations else name
            part = self.bins.cells.slices[source]
            codes = np.arange(part.stop - part.start, dtype=np.int64)
            if name in relations:
                images = relations[name].values
                named = [origin for origin, image in images.items() if str(image) == label]
                mask = matches(named, source, codes, self.schema)
            else:
                mask = matches([label], name, codes, self.schema)
            masks[source] = masks.get(source, np.ones(len(codes), dtype=bool)) & mask
        return masks
