"""The rigorous form: everything about the structure comes out of noisy sums that were charged.

    statistics ─► bins ─► ask: pairs ─► Σ counts + noise ─► search ─► ask: families ─► Σ counts + noise ─► tables

The parties count twice and search nothing, so no migrant, no score and no structure ever leaves one of them; the search
runs at the aggregator, in one population, on what was opened. The second ask always counts as many tables as the plan
has paid for: families first, then the pairs that tell most.
"""

from __future__ import annotations

from functools import cached_property
from itertools import combinations
from math import prod

import numpy as np

from synth.counting import possible
from synth.counting.binning import bins_worth_counting
from synth.counting.estimates import Measurement, measured_columns, measured_tables
from synth.counting.evidence import Evidence
from synth.counting.ownership import countable, sides_of, table_variances
from synth.counting.party_side import asked_bins, tables_of, with_noise
from synth.counting.schedule import candidate_pairs, divided_noise
from synth.encoding import contingency
from synth.encoding.bins import Bins, cell_weights
from synth.encoding.cells import Cells
from synth.encoding.contingency import Clique
from synth.encoding.rows import Rows
from synth.encoding.scales import Floats
from synth.errors import ProtocolError
from synth.grid import grid_of
from synth.interface import Answer, Array, Arrays, Ask, Sum
from synth.messages.asked import Form, checked, require_names, whole_numbers
from synth.plan import Plan
from synth.privacy.events import CountNoise, Event, Unaccounted
from synth.privacy.noise import NoiseSource
from synth.privacy.shares import summed_variance
from synth.statistics.histograms import Statistics
from synth.synthesizers.bayes.base import BayesBase, summed
from synth.synthesizers.bayes.genetics import Breeding
from synth.synthesizers.bayes.scores import FamilyScores
from synth.synthesizers.bayes.settings import BayesSettings
from synth.synthesizers.bayes.tables import learn

EXACT_TABLES = ("exact contingency tables of pairs of columns", "exact contingency tables of columns and their parents")
ITERATIONS = 1000  # at most, of fitting the model of pairs that the search reads
DRAWN_ROWS = 100_000  # from it


class ReleasedSearch(BayesBase):
    """`measured` grows by one entry an ask; `parents` are known after the first."""

    def __init__(self, plan: Plan, settings: BayesSettings) -> None:
        super().__init__(plan, settings, grid_of(plan))
        self.pairs = candidate_pairs(plan, self.names, settings.pairs, settings.first_share)
        self.tables = min(len(self.names) - 1, len(self.pairs))  # counted in the second ask: the first column is alone
        self.measured: list[tuple[list[Clique], Array]] = []
        self.variances: list[float] = []  # of the noise in those counts; 0 if they are exact
        self.parents: dict[int, Clique] = {}

    @cached_property
    def noise(self) -> list[CountNoise] | None:
        """The noise of both asks; None without privacy."""
        shares = [self.settings.first_share, 1 - self.settings.first_share]
        return divided_noise(self.plan, self.cells.queries, [len(self.pairs), self.tables], shares)

    # Aggregator

    def begin(self, statistics: Statistics, seed: int) -> None:
        self.statistics, self.seed = statistics, seed
        noise = (self.noise or [])[1:]
        self.bins = bins_worth_counting(self.plan, statistics, noise, self.settings.bins, self.settings.labels)

    def ask(self, number: int) -> Ask | None:
        if number >= self.asks:
            return None
        cliques = self.pairs if number == 0 else self._families()
        arrays = {"bins": self.known_bins().of_cell, "cliques": contingency.pack_cliques(cliques)}
        return Ask(arrays, {"phase": self.phase, "round": number})

    def absorb(self, total: Sum) -> None:
        cliques = self.pairs if self.absorbed == 0 else self._families()
        sums = summed(total, "counts", (contingency.cell_count(cliques, self.sizes()),))
        event = None if self.noise is None else self.noise[self.absorbed]
        counts, variance = self.known_statistics().over_the_same_rows(
            self.plan, total, np.rint(sums).astype(np.int64), event
        )
        self.measured.append((cliques, counts))
        self.variances.append(variance)
        self.absorbed += 1
        if self.absorbed == 1:
            self.parents = self._search()
        else:
            self.network = learn(self.parents, self._evidence())

    def cell_weights(self) -> Floats:
        statistics = self.known_statistics()
        return cell_weights(self.known_bins(), statistics.finest[1], statistics.variance**0.5)

    def counted_cells(self, statistics: Statistics) -> Cells:
        return statistics.finest[0]

    def state(self) -> Arrays:
        arrays = super().state()
        if self.parents:
            arrays["order"] = np.array(list(self.parents))
            arrays["parents"] = contingency.pack_cliques(list(self.parents.values()))
        arrays["variances"] = np.array(self.variances)
        for number, (cliques, counts) in enumerate(self.measured):
            arrays |= {f"cliques/{number}": contingency.pack_cliques(cliques), f"counts/{number}": counts}
        return arrays

    def restore(self, state: Arrays) -> None:
        super().restore(state)
        if "order" in state:
            parents = contingency.unpack_cliques(state["parents"])
            self.parents = dict(zip(state["order"].tolist(), parents, strict=True))
        self.variances = state["variances"].tolist()
        numbers = range(sum(key.startswith("counts/") for key in state))
        self.measured = [(contingency.unpack_cliques(state[f"cliques/{n}"]), state[f"counts/{n}"]) for n in numbers]

    # Party

    def cost(self, ask: Ask, party: str) -> list[Event]:
        return self._event(self._checked(ask)[0])

    def planned_costs(self, party: str) -> list[list[Event]]:
        return [self._event(number) for number in range(self.asks)]

    def answer(self, ask: Ask, party: str, data: Rows, local: Arrays, noise: NoiseSource) -> tuple[Answer, Arrays]:
        number, cliques, bins = self._checked(ask)
        event = None if self.noise is None else self.noise[number]
        sides = sides_of(self.plan, party, bins, self.names, cliques)
        counts = with_noise(tables_of(data, bins, self.names, cliques), self.plan, event, noise, sides)
        return Answer({"counts": counts}, weight=self.plan.share(party)), local

    def counted_bins(self, ask: Ask) -> Bins:
        """What a party counts by, before it is asked for tables across parties."""
        return self._checked(ask)[2]

    def _event(self, number: int) -> list[Event]:
        return [self.noise[number]] if self.noise else [Unaccounted(EXACT_TABLES[number])]

    def _checked(self, ask: Ask) -> tuple[int, list[Clique], Bins]:
        """Round, cliques and bins of an ask; refuses what the plan does not contain."""
        (number,) = whole_numbers(ask, self.phase, "round")
        require_names(ask.arrays, ("bins", "cliques"))
        if number >= self.asks:
            raise ProtocolError("an ask names no round of the plan; the aggregator runs another plan")
        bins = asked_bins(ask, self.cells, self.settings.bins)
        widest = 2 if number == 0 else max((*ask.arrays["cliques"].shape[1:], 2))
        tables = len(self.pairs) if number == 0 else self.tables
        packed = checked(ask.arrays, "cliques", Form((tables, widest), np.int64))
        cliques = contingency.unpack_cliques(packed)
        if (number == 0 and cliques != self.pairs) or not all(self._countable(clique, bins) for clique in cliques):
            raise ProtocolError("an ask counts other tables, or larger ones, than the plan says")
        return number, cliques, bins

    def _countable(self, clique: Clique, bins: Bins) -> bool:
        """Two columns or more, rising, no more than a family has, in a table that is not too large."""
        known = 2 <= len(clique) <= self.settings.parents + 1 and list(clique) == sorted(set(clique))
        if not known or clique[0] < 0 or clique[-1] >= len(self.names):
            return False
        if not countable(self.plan, self.names, clique):
            return False
        return len(clique) == 2 or prod(bins.size(self.names[one]) for one in clique) <= self.settings.table_cells

    # Post-processing of what was released

    def _search(self) -> dict[int, Clique]:
        """Parents by column, in the order of the fittest network found. Orders are bred; parents follow from them."""
        scores, settings = self._scores(), self.settings
        breeding = Breeding(len(self.names), 0, settings.population, settings.survivors, scores.fitness, self.seed)
        return scores.parents(breeding.evolved(breeding.first(), 0, settings.generations)[0])

    def _scores(self) -> FamilyScores:
        evidence = self._evidence()
        target = self.plan.modelled.target
        aim = self.names.index(target) if target in self.names else None
        tree = evidence.fit(evidence.select(aim, self.settings.model_size_mb), ITERATIONS).tree
        drawn = tree.sample(DRAWN_ROWS, np.random.default_rng(self.seed))
        return FamilyScores(
            [drawn[number] for number in range(len(self.names))],
            self.sizes(),
            max(float(np.mean([column.counts.sum() for column in evidence.columns])), 1.0),
            summed_variance(self.plan, self.noise[1]) if self.noise else 0.0,
            self.settings.parents,
            self.settings.table_cells,
            aim if target in self.plan.modelled.discrete else None,
        )

    def _families(self) -> list[Clique]:
        """The tables of the second ask."""
        wanted = [tuple(sorted((child, *above))) for child, above in self.parents.items() if above]
        families = [part for family in wanted for part in self._parts(family)]
        rest = [pair for pair in self.pairs if pair not in families]
        return list(dict.fromkeys(families + rest))[: self.tables]

    def _parts(self, family: Clique) -> list[Clique]:
        """The family's table, or its pairs where it lies across parties: nobody can count three columns there."""
        if countable(self.plan, self.names, family):
            return [family]
        return [pair for pair in combinations(family, 2) if pair in self.pairs]

    def _evidence(self) -> Evidence:
        bins, tables = self.known_bins(), list[Measurement]()
        for (cliques, sums), variance in zip(self.measured, self.variances, strict=True):
            each = table_variances(self.plan, self.names, cliques, variance)
            tables += measured_tables(sums, cliques, self.sizes(), each)
        columns = measured_columns(self.known_statistics(), bins, self.names)
        return Evidence.of(columns, tables, possible.zeros(self.plan.constraints, bins, self.names))
