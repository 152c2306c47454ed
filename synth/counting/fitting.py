"""The graphical model of greatest entropy that explains noisy tables best (McKenna et al., ICML 2019).

Mirror descent on the marginals: potentials go against the gradient of the squared error, weighted by precision, and a
pass of messages through the junction tree turns potentials into marginals. Momentum with restarts saves most of the
steps. In NumPy, because a model of a megabyte takes milliseconds a step, while compiling it (mbi on jax; the tests
compare with it) takes longer than the whole descent: docs/decisions/0006-marginals.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from synth.counting.estimates import Measurement
from synth.counting.structure import Structure
from synth.counting.tree import Tree, axes_outside
from synth.encoding.contingency import Clique
from synth.encoding.scales import Floats

BOLDNESS = 300.0  # first step, relative to the one that theory allows; shortened while it fails
GROWTH = 1.02  # of the step after each success
PATIENCE = 50  # steps between two looks at whether the fit still gains
GAIN = 0.003  # relative gain over that many steps below which it stops
NOISY_GAIN = 0.03  # the same where tables are mostly noise and already explained: what is left to gain is noise, too


@dataclass(frozen=True)
class Zeros:
    """Combinations of bins that cannot occur: a table over the clique, False where forbidden."""

    clique: Clique
    possible: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Fit:
    tree: Tree
    misfit: float  # mean squared error of the model's counts, in standard deviations of their noise


@dataclass(frozen=True)
class _Point:
    """Potentials, and what follows from them."""

    potentials: list[Floats]
    beliefs: list[Floats]
    loss: float
    gradients: list[Floats]  # one per measurement


class Fitter:
    """One structure, its measurements and its impossible combinations."""

    def __init__(self, structure: Structure, measured: Sequence[Measurement], zeros: Sequence[Zeros] = ()) -> None:
        self.structure = structure
        self.measured = [self._in_order(one) for one in measured]
        self.homes = [structure.home(one.clique) for one in self.measured]
        self.possible = [np.ones(structure.shape(number)) for number in range(len(structure.cliques))]
        for zero in zeros:
            home = structure.home(zero.clique)
            clique = structure.ordered(zero.clique)
            allowed = np.transpose(zero.possible, [zero.clique.index(column) for column in clique]).astype(np.float64)
            self.possible[home] *= self._lift(home, clique, allowed)

    def fit(self, rows: float, iterations: int, gain: float | None = None) -> Fit:
        """At most so many steps; fewer if `gain` (by default GAIN or NOISY_GAIN) is not reached."""
        here = self._evaluate(self._start(), rows)
        step, momentum, before, checked = self._first_step(rows), 1.0, here.potentials, here.loss
        for number in range(1, iterations + 1):
            moved = self._move(here, step)
            following = (1 + sqrt(1 + 4 * momentum**2)) / 2
            drift = (momentum - 1) / following
            there = self._evaluate([new + drift * (new - old) for new, old in zip(moved, before, strict=True)], rows)
            if there.loss <= here.loss:
                here, before, momentum, step = there, moved, following, step * GROWTH
            elif momentum > 1:
                before, momentum = here.potentials, 1.0
            else:
                step /= 2
            if number % PATIENCE == 0:
                if checked - here.loss < (self._least_gain(here, rows) if gain is None else gain) * here.loss:
                    break
                checked = here.loss
        return Fit(Tree(self.structure.cliques, self.structure.parents, here.beliefs), self._misfit(here))

    def _misfit(self, here: _Point) -> float:
        return 2 * here.loss / sum(one.counts.size for one in self.measured)

    def _least_gain(self, here: _Point, rows: float) -> float:
        """Descent that goes on fits noise at last. Where noise is less than the sampling error of the rows (a variance
        of one row per row in a cell) that does no harm, and where the misfit is above 1 there is more than noise."""
        noise = sum(float(one.variance.sum()) for one in self.measured)
        return NOISY_GAIN if noise > rows * len(self.measured) and self._misfit(here) < 1 else GAIN

    def _in_order(self, one: Measurement) -> Measurement:
        clique = self.structure.ordered(one.clique)
        axes = [one.clique.index(column) for column in clique]
        return Measurement(clique, np.transpose(one.counts, axes), np.transpose(one.variance, axes))

    def _lift(self, number: int, clique: Clique, table: Floats) -> Floats:
        """A clique's table, shaped to broadcast over its home's."""
        return np.expand_dims(table, axes_outside(self.structure.cliques[number], clique))

    def _project(self, number: int, clique: Clique, belief: Floats) -> Floats:
        found: Floats = belief.sum(axis=axes_outside(self.structure.cliques[number], clique))
        return found

    def _start(self) -> list[Floats]:
        """Independent columns, from their own counts."""
        potentials = [np.zeros(self.structure.shape(number)) for number in range(len(self.structure.cliques))]
        for one, home in zip(self.measured, self.homes, strict=True):
            if len(one.clique) == 1:
                least = 0.5 * np.sqrt(one.variance)
                logs = np.log(np.maximum(one.counts, least) / np.maximum(one.counts, least).sum())
                potentials[home] += self._lift(home, one.clique, logs)
        return potentials

    def _first_step(self, rows: float) -> float:
        steepness = np.zeros(len(self.structure.cliques))
        for one, home in zip(self.measured, self.homes, strict=True):
            cells = np.prod(self.structure.shape(home)) / one.counts.size
            steepness[home] += cells / np.min(one.variance)
        return float(BOLDNESS * 2 / (steepness.max() * rows))

    def _move(self, here: _Point, step: float) -> list[Floats]:
        moved = [table.copy() for table in here.potentials]
        for one, home, gradient in zip(self.measured, self.homes, here.gradients, strict=True):
            moved[home] -= self._lift(home, one.clique, step * gradient)
        return moved

    def _evaluate(self, potentials: list[Floats], rows: float) -> _Point:
        beliefs = self._calibrate(potentials)
        loss, gradients = 0.0, []
        for one, home in zip(self.measured, self.homes, strict=True):
            error = rows * self._project(home, one.clique, beliefs[home]) - one.counts
            gradients.append(error / one.variance)
            loss += 0.5 * float((error * gradients[-1]).sum())
        return _Point(potentials, beliefs, loss, gradients)

    def _calibrate(self, potentials: list[Floats]) -> list[Floats]:
        """Marginals of the maximal cliques: messages to the roots, then back."""
        cliques, parents = self.structure.cliques, self.structure.parents
        tables = [np.exp(table - table.max()) * able for table, able in zip(potentials, self.possible, strict=True)]
        upward: dict[int, Floats] = {}
        for number in range(len(cliques) - 1, -1, -1):
            if (parent := parents[number]) >= 0:
                message = self._message(number, parent, tables[number])
                upward[number] = message / message.max()
                tables[parent] *= np.expand_dims(upward[number], axes_outside(cliques[parent], cliques[number]))
        for number, clique in enumerate(cliques):
            if (parent := parents[number]) >= 0:
                message = self._message(parent, number, tables[parent])
                known = upward[number]
                message = np.divide(message, known, out=np.zeros_like(message), where=known > 0)
                tables[number] *= np.expand_dims(message, axes_outside(clique, cliques[parent]))
            tables[number] /= tables[number].sum()
        return tables

    def _message(self, sender: int, receiver: int, table: Floats) -> Floats:
        return self._project(sender, self.structure.cliques[receiver], table)
