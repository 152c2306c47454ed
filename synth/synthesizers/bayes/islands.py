"""The published form: FedGA's islands. Every party breeds networks on its own exact counts, the best of each migrate.

    round      migrants (one a party) ─► breed `interval` generations ─► the party's best, in its place of a sum
    scores     the last migrants ─► each party's fitness of each; the mean decides
    families   the winner's tables ─► Σ counts + Laplace shares ─► clip, normalise

Migrants and scores are functions of exact counts, so these asks are `Unaccounted` and ε, which the thesis prints for
the tables alone, is nominal.

NOTE[DIFF] Bounds and categories are the schema's; the thesis assumes a protocol for the global extremes and the union.
NOTE[DIFF] Laplace shares are additive (laplace.py); the thesis assumes a secure multiplication.
NOTE[DIFF] Scores are added over the parties instead of being shown one by one, which decides the same.
NOTE[DIFF] The statistics' noisy histogram, which every plan asks for first, is not used.
"""

from __future__ import annotations

from itertools import combinations
from math import prod

import numpy as np

from synth.encoding import contingency
from synth.encoding.bins import Bins
from synth.encoding.cells import Cells
from synth.encoding.contingency import Clique, Ints
from synth.encoding.rows import Rows
from synth.encoding.scales import Floats
from synth.errors import PlanError, ProtocolError
from synth.interface import Answer, Arrays, Ask, Sum
from synth.messages.asked import Form, checked, exactly, require_names, whole_numbers
from synth.plan import Plan
from synth.privacy.events import Event, Laplace, Unaccounted
from synth.privacy.noise import NoiseSource
from synth.statistics.histograms import Statistics
from synth.synthesizers.bayes import genetics
from synth.synthesizers.bayes.base import BayesBase, summed
from synth.synthesizers.bayes.genetics import Breeding, Individual, usable
from synth.synthesizers.bayes.laplace import laplace_share
from synth.synthesizers.bayes.network import Network, Node, conditional
from synth.synthesizers.bayes.scores import information
from synth.synthesizers.bayes.settings import BayesSettings


class IslandSearch(BayesBase):
    def __init__(self, plan: Plan, settings: BayesSettings) -> None:
        super().__init__(plan, settings, Cells(plan.modelled, settings.bins, even=True))
        if len(self.names) <= settings.parents:
            raise PlanError(
                f"with {settings.parents} parents the published form needs more columns than that which no relation "
                "determines; this schema has fewer."
            )
        widest = sorted(self.cells.slices[name].stop - self.cells.slices[name].start for name in self.names)
        if prod(widest[-settings.parents - 1 :]) > settings.table_cells:
            raise PlanError(
                f"a column with {settings.parents} parents may need a table of {prod(widest[-settings.parents - 1 :])} "
                f"cells; raise synthesizer.table_cells ({settings.table_cells}) or lower parents or bins."
            )
        self.slots = {party.name: number for number, party in enumerate(plan.parties)}
        self.genes = len(self.names) * (1 + settings.parents)
        self.migrants: Ints = np.zeros((0, self.genes), dtype=np.int64)
        self.winner: Individual | None = None
        self._all = Bins(self.cells, np.concatenate([np.arange(s.stop - s.start) for s in self.cells.slices.values()]))

    @property
    def scoring(self) -> int:
        """The number of the ask for scores; the families' comes after it."""
        return self.settings.migrations

    # Aggregator

    def begin(self, statistics: Statistics, seed: int) -> None:
        self.statistics, self.seed, self.bins = statistics, seed, self._all

    def ask(self, number: int) -> Ask | None:
        if number >= self.asks:
            return None
        if number <= self.scoring:
            return Ask({"migrants": self.migrants}, {"phase": self.phase, "round": number})
        return Ask({"cliques": contingency.pack_cliques(self._tables())}, {"phase": self.phase, "round": number})

    def absorb(self, total: Sum) -> None:
        if self.absorbed < self.scoring:
            placed = np.rint(summed(total, "best", (len(self.slots), 1 + self.genes))).astype(np.int64)
            self.migrants = placed[placed[:, 0] == 1, 1:]  # the place of a party that is lost stays empty
            if len(self.migrants) == 0:
                raise ProtocolError("no network came back from any party; they run another version")
        elif self.absorbed == self.scoring:
            fitness = summed(total, "fitness", (len(self.migrants),))
            self.winner = self._unpacked(self.migrants)[int(np.argmax(fitness))]
        else:
            tables = self._tables()
            counts = summed(total, "counts", (contingency.cell_count(tables, self.sizes()),))
            self.network = self._learnt(contingency.split(counts, tables, self.sizes()))
        self.absorbed += 1

    def cell_weights(self) -> Floats:
        return np.ones(self.cells.size)

    def state(self) -> Arrays:
        arrays = super().state() | {"migrants": self.migrants}
        return arrays | ({"winner": genetics.pack(self.winner)} if self.winner else {})

    def restore(self, state: Arrays) -> None:
        super().restore(state)
        self.migrants = state.get("migrants", self.migrants)
        if "winner" in state:
            self.winner = genetics.unpack(state["winner"], len(self.names), self.settings.parents)

    # Party

    def cost(self, ask: Ask, party: str) -> list[Event]:
        return self._event(self._checked(ask))

    def planned_costs(self, party: str) -> list[list[Event]]:
        return [self._event(number) for number in range(self.asks)]

    def answer(self, ask: Ask, party: str, data: Rows, local: Arrays, noise: NoiseSource) -> tuple[Answer, Arrays]:
        number = self._checked(ask)
        if number > self.scoring:
            return Answer({"counts": self._counts(ask, data, noise)}, weight=self.plan.share(party)), local
        if "information" not in local:
            local = local | {"information": self._information(data)}
        told = local["information"]
        if number == self.scoring:
            fitness = np.array([fitness_of(one, told) for one in self._unpacked(ask.arrays["migrants"])])
            return Answer({"fitness": fitness}, weight=self.plan.share(party)), local
        local = self._bred(number, self._unpacked(ask.arrays["migrants"]), local, noise)
        best = np.zeros((len(self.slots), 1 + self.genes), dtype=np.int64)
        best[self.slots[party]] = [1, *local["population"][0]]
        return Answer({"best": best}, weight=self.plan.share(party)), local

    def _bred(self, number: int, migrants: list[Individual], local: Arrays, noise: NoiseSource) -> Arrays:
        """The party's island after another `interval` generations, fittest first."""
        settings, told = self.settings, local["information"]
        if number == 0:
            local = local | {"search_seed": noise.child("search").uint64(1) >> np.uint64(1)}
        seed = int(local["search_seed"][0])
        breeding = Breeding(
            len(self.names),
            settings.parents,
            settings.population,
            settings.survivors,
            lambda one: fitness_of(one, told),
            seed,
        )
        population = breeding.first() if number == 0 else self._unpacked(local["population"])
        born = number * settings.interval
        generations = min(settings.interval, settings.generations - born)
        alive = breeding.evolved(population, born, generations, migrants)
        return local | {"population": np.stack([genetics.pack(one) for one in alive])}

    def _information(self, data: Rows) -> Floats:
        """Mutual information of every two columns in the party's own rows; 0 with a constant column."""
        sizes = [self._all.size(name) for name in self.names]
        pairs = list(combinations(range(len(sizes)), 2))
        tables = contingency.split(data.tables(self._all, self.names, pairs), pairs, sizes)
        told = np.zeros((len(sizes), len(sizes)))
        for (first, second), table in zip(pairs, tables, strict=True):
            told[first, second] = told[second, first] = information(table / max(table.sum(), 1.0))
        return told

    def _counts(self, ask: Ask, data: Rows, noise: NoiseSource) -> Ints:
        cliques = contingency.unpack_cliques(ask.arrays["cliques"])
        counts = data.tables(self._all, self.names, cliques)
        if self.scale is None:
            return counts
        return counts + laplace_share(self.scale, self.plan.noisy_parties, len(counts), noise.child("counts"))

    @property
    def scale(self) -> float | None:
        """Of the Laplace noise in every count of the families' tables; None without privacy."""
        if self.plan.privacy == "none":
            return None
        return self.settings.table_sensitivity * (len(self.names) - self.settings.parents) / self.plan.privacy.epsilon

    def _event(self, number: int) -> list[Event]:
        if number < self.scoring:
            return [Unaccounted("the network that fits exact local counts best (FedGA)")]
        if number == self.scoring:
            return [Unaccounted("how well networks fit exact local counts (FedGA)")]
        if self.scale is None:
            return [Unaccounted("exact contingency tables of columns and their parents")]
        return [Laplace(self.scale / (len(self.names) - self.settings.parents))]

    def _checked(self, ask: Ask) -> int:
        """The round of an ask; refuses what the plan does not contain."""
        (number,) = whole_numbers(ask, self.phase, "round")
        if number >= self.asks:
            raise ProtocolError("an ask names no round of the plan; the aggregator runs another plan")
        if number <= self.scoring:
            require_names(ask.arrays, ("migrants",))
            sent = ask.arrays["migrants"].shape
            arrived = 0 if number == 0 else min(max((*sent[:1], 1)), len(self.slots))
            self._unpacked(checked(ask.arrays, "migrants", Form((arrived, self.genes), np.int64)))
            return number
        columns = len(self.names)
        form = Form((columns - self.settings.parents, self.settings.parents + 1), np.int64)
        cliques = contingency.unpack_cliques(exactly(ask.arrays, {"cliques": form})["cliques"])
        if not all(_counts_columns(clique, columns) for clique in cliques):
            raise ProtocolError("an ask counts tables that are none of the plan's columns")
        return number

    # Shared

    def _unpacked(self, packed: Ints) -> list[Individual]:
        return [genetics.unpack(genes, len(self.names), self.settings.parents) for genes in packed]

    def _tables(self) -> list[Clique]:
        """One table for the first columns of the winner together, and one for each after them (PrivBayes)."""
        if self.winner is None:
            raise ProtocolError("tables were asked for before a network was chosen")
        families = families_of(self.winner, self.settings.parents)
        return [tuple(sorted((child, *above))) for child, above in list(families.items())[self.settings.parents :]]

    def _learnt(self, tables: list[Floats]) -> Network:
        """Clip, normalise, condition; the first columns are margins of the first table."""
        if self.winner is None:
            raise ProtocolError("tables came back before a network was chosen")
        nodes, cliques = [], self._tables()
        for place, (child, above) in enumerate(families_of(self.winner, self.settings.parents).items()):
            number = max(place - self.settings.parents, 0)
            clique, table = cliques[number], np.maximum(tables[number], 0.0)
            outside = tuple(axis for axis, column in enumerate(clique) if column not in (*above, child))
            kept = [column for column in clique if column in (*above, child)]
            joint = np.transpose(table.sum(axis=outside), [kept.index(column) for column in (*above, child)])
            nodes.append(Node(child, above, conditional(joint)))
        return Network(nodes)


def _counts_columns(clique: Clique, columns: int) -> bool:
    return len(clique) > 0 and list(clique) == sorted(set(clique)) and clique[0] >= 0 and clique[-1] < columns


def families_of(individual: Individual, parents: int) -> dict[int, Clique]:
    """Parents by column, in order: all earlier ones of the first columns, whatever their genes say; then the genes."""
    order = individual[0]
    found = usable(individual)
    return {column: order[:place] if place <= parents else found[column] for place, column in enumerate(order)}


def fitness_of(individual: Individual, told: Floats) -> float:
    """The thesis's fitness: pairwise mutual information over all edges."""
    families = families_of(individual, len(individual[1]))
    return float(sum(told[child, parent] for child, above in families.items() for parent in above))
