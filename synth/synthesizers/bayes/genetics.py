"""The genetic algorithm of FedGA: networks as genes, bred by cutting, shuffling and swapping.

An individual is a tuple: first the order in which columns enter the network, then for every column its candidate
parents. A candidate counts only where it comes before its child, so every individual is an acyclic network. Operators
follow the code the thesis builds on. Generation g draws from the stream (seed, g) whatever was run before it, so a
search that pauses for migrants and finds none is the search that never paused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from synth.encoding.contingency import Clique, Ints
from synth.errors import ProtocolError

Individual = tuple[tuple[int, ...], ...]  # order, then candidate parents of column 0, 1, …
Fitness = Callable[[Individual], float]


@dataclass(frozen=True)
class Breeding:
    """One search: how many columns, at most how many parents, and how fitness is told."""

    columns: int
    parents: int
    population: int
    survivors: int
    fitness: Fitness
    seed: int
    _known: dict[Individual, float] = field(default_factory=dict)

    def first(self) -> list[Individual]:
        """A random population: parents come before their child where there are enough."""
        rng = np.random.default_rng((self.seed, 0))
        return self._ranked(self._random(rng) for _ in range(self.population))

    def evolved(
        self, population: Sequence[Individual], born: int, generations: int, migrants: Sequence[Individual] = ()
    ) -> list[Individual]:
        """The population after `generations` more, fittest first; `born` were before. Migrants breed in the first."""
        alive = list(population)
        for generation in range(born + 1, born + generations + 1):
            arrived = [one for one in migrants if one not in alive] if generation == born + 1 else []
            alive = self._next(alive[: self.survivors] + arrived, np.random.default_rng((self.seed, generation)))
        return alive

    def _next(self, elite: list[Individual], rng: np.random.Generator) -> list[Individual]:
        rate = 1 / self.columns
        young = []
        for _ in range(max(self.population - len(elite), 0)):
            child = elite[rng.integers(len(elite))]
            if rng.random() < rate:
                child = self._crossed(child, elite[rng.integers(len(elite))], rng)
            young.append(self._swapped(self._shuffled(child[0], rate, rng), child[1:], rate, rng))
        return self._ranked([*elite, *young])[: self.population]

    def _ranked(self, individuals: Iterable[Individual]) -> list[Individual]:
        listed = list(individuals)
        for one in listed:
            if one not in self._known:
                self._known[one] = self.fitness(one)
        return sorted(listed, key=lambda one: -self._known[one])

    def _random(self, rng: np.random.Generator) -> Individual:
        order = tuple(rng.permutation(self.columns).tolist())
        candidates = []
        for column in range(self.columns):
            before = list(order[: order.index(column)])
            if len(before) > self.parents:
                chosen = rng.choice(before, self.parents, replace=False).tolist()
            else:
                rest = [other for other in range(self.columns) if other not in before]
                chosen = before + rng.choice(rest, min(self.parents - len(before), len(rest)), replace=False).tolist()
            candidates.append(tuple(chosen))
        return (order, *candidates)

    def _crossed(self, first: Individual, second: Individual, rng: np.random.Generator) -> Individual:
        cut = int(rng.integers(self.columns + 1))
        return first[:cut] + second[cut:]

    def _shuffled(self, order: tuple[int, ...], rate: float, rng: np.random.Generator) -> tuple[int, ...]:
        moved = list(order)
        for place in np.flatnonzero(rng.random(self.columns) < rate).tolist():
            other = int(rng.integers(self.columns))
            moved[place], moved[other] = moved[other], moved[place]
        return tuple(moved)

    def _swapped(
        self, order: tuple[int, ...], candidates: Sequence[tuple[int, ...]], rate: float, rng: np.random.Generator
    ) -> Individual:
        """Candidates that come too late are replaced always, others at the rate; by a random earlier column."""
        place = {column: number for number, column in enumerate(order)}
        changed = []
        for column, chosen in enumerate(candidates):
            kept = list(chosen)
            luck = rng.random(len(kept))
            for slot, candidate in enumerate(chosen):
                if place[candidate] >= place[column] or luck[slot] < rate:
                    spare = [other for other in order[: place[column]] if other not in kept]
                    if spare:
                        kept[slot] = spare[rng.integers(len(spare))]
            changed.append(tuple(kept))
        return (order, *changed)


def usable(individual: Individual) -> dict[int, Clique]:
    """The candidates of every column that come before it, by column in the order of the network."""
    order = individual[0]
    return {
        column: tuple(parent for parent in individual[1 + column] if parent in order[:place])
        for place, column in enumerate(order)
    }


def pack(individual: Individual) -> Ints:
    return np.concatenate([np.array(part, dtype=np.int64) for part in individual])


def unpack(genes: Ints, columns: int, parents: int) -> Individual:
    """The inverse of `pack`; refuses what is no individual."""
    order, candidates = genes[:columns], genes[columns:]
    if candidates.shape != (columns * parents,) or sorted(order.tolist()) != list(range(columns)):
        raise ProtocolError("a migrant is no network over the plan's columns; its sender runs another version")
    if candidates.min(initial=0) < 0 or candidates.max(initial=0) >= columns:
        raise ProtocolError("a migrant names parents that are no columns of the plan; its sender runs another version")
    return (tuple(order.tolist()), *(tuple(row) for row in candidates.reshape(columns, parents).tolist()))
