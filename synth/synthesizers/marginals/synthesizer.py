"""Federated marginals: count pairs of columns together, fit a graphical model to the noisy sums, draw rows from it.

    statistics ─► bins ─► ask: cliques ─► Σ counts + noise shares ─► select pairs ─► fit ─► tree ─► rows

Every party counts its rows over the same bins, adds its share of integer noise, and only the sum is opened. Everything
after the sum (which pairs matter, the model, the rows) is post-processing of what was released, so it costs nothing;
and the sum is the same however the rows are spread over the parties.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from synth.constraints import computed
from synth.counting import possible
from synth.counting.binning import bins_worth_counting
from synth.counting.drawing import Drawing
from synth.counting.estimates import Measurement, measured_columns, measured_tables
from synth.counting.evidence import Evidence
from synth.counting.ownership import countable, sides_of, table_variances
from synth.counting.party_side import asked_bins, tables_of, with_noise
from synth.counting.schedule import candidate_pairs, divided_noise, pairs_again
from synth.counting.settling import Settled
from synth.counting.tree import Tree
from synth.counting.triples import is_with_target, with_target
from synth.counting.walking import Walk
from synth.encoding import contingency
from synth.encoding.bins import Bins, cell_weights
from synth.encoding.contingency import Clique
from synth.encoding.records import Records
from synth.encoding.rows import Rows
from synth.errors import PlanError, ProtocolError
from synth.grid import grid_of
from synth.interface import Answer, Array, Arrays, Ask, Sum, Synthesizer
from synth.messages.asked import Form, checked, require_names, whole_numbers
from synth.plan import Plan
from synth.privacy.events import CountNoise, Event, Unaccounted
from synth.privacy.noise import NoiseSource
from synth.privacy.shares import summed_variance
from synth.statistics.histograms import Statistics
from synth.synthesizers.marginals.settings import MarginalsSettings

SETTLED = "settled/"  # before the names of its arrays in a saved model


class Marginals(Synthesizer):
    """The family. `measured` grows by one entry an ask; the tree exists once all have been absorbed."""

    def __init__(self, plan: Plan) -> None:
        if not isinstance(plan.synthesizer, MarginalsSettings):
            raise PlanError("the plan's synthesizer is not 'marginals'; build it from its own settings")
        self.plan, self.settings = plan, plan.synthesizer
        self.cells = grid_of(plan)
        related = computed(plan.constraints)
        self.names = [name for name in plan.modelled.released if name not in related]
        if len(self.names) < 2:
            raise PlanError("'marginals' needs two columns that no relation determines; this schema has fewer")
        target = plan.modelled.target
        self.target = self.names.index(target) if target in self.names else None
        first = self.settings.first_share if self.settings.rounds else 1.0
        self.pairs = candidate_pairs(plan, self.names, self.settings.pairs, first)
        self.again = pairs_again(len(self.names), len(self.pairs), self.settings.pairs, self.settings.round_pairs)
        self.asks = plan.family.asks
        self.measured: list[tuple[list[Clique], Array]] = []
        self.variances: list[float] = []  # of the noise in those counts; 0 if they are exact
        self.statistics: Statistics | None = None
        self.bins: Bins | None = None
        self.tree: Tree | None = None
        self.settled: Settled | None = None  # the tree with the pairs it has no room for, if there are any
        self.misfit = float("nan")

    @cached_property
    def noise(self) -> list[CountNoise] | None:
        """The noise of every ask; None without privacy. One release of q tables changes by one row in q cells, so its
        price depends on q only, never on bins or on which columns were chosen."""
        settings = self.settings
        queries = [len(self.pairs)] + [self.again] * settings.rounds
        later = (1 - settings.first_share) / max(settings.rounds, 1)
        shares = [settings.first_share] + [later] * settings.rounds
        return divided_noise(self.plan, self.cells.queries, queries, shares)

    # Aggregator

    def begin(self, statistics: Statistics, seed: int) -> None:
        self.statistics = statistics
        self.bins = bins_worth_counting(
            self.plan, statistics, self.noise or [], self.settings.bins, self.settings.labels
        )

    def ask(self, number: int) -> Ask | None:
        if number >= self.asks:
            return None
        cliques = self.pairs if number == 0 else self._again()
        arrays = {"bins": self._bins().of_cell, "cliques": contingency.pack_cliques(cliques)}
        return Ask(arrays, {"phase": self.phase, "round": number})

    def absorb(self, total: Sum) -> None:
        counts = total.arrays.get("counts")
        cliques = contingency.unpack_cliques(self._asked(len(self.measured)))
        if counts is None or counts.shape != (contingency.cell_count(cliques, self._sizes()),):
            raise ProtocolError("counts of the wrong shape came back; the parties run another version")
        event = self.noise[len(self.measured)] if self.noise else None
        counts, variance = self._statistics().over_the_same_rows(
            self.plan, total, np.rint(counts).astype(np.int64), event
        )
        self.measured.append((cliques, counts))
        self.variances.append(variance)
        if len(self.measured) == self.asks:
            fit = self._evidence().fit(self._selected(), self.settings.iterations)
            self.tree, self.misfit = fit.tree, fit.misfit
            self.settled = self._evidence().settled(fit.tree)

    def sample(self, rows: int, seed: int, where: dict[str, str] | None = None) -> Records:
        if self.tree is None:
            raise ProtocolError("rows were asked for before the model was fitted; run the plan to its end first")
        statistics = self._statistics()
        weights = cell_weights(self._bins(), statistics.finest[1], statistics.variance**0.5)
        drawing = Drawing(self.plan.modelled, self.plan.constraints, self.names, self._bins(), weights)
        rng, layout = np.random.default_rng(seed), self.plan.layout
        if layout is not None and layout.is_series:
            return Walk(layout, drawing, self.tree).series(rows, rng, where or {})
        return drawing.rows(self.settled or self.tree, rows, rng, where or {})

    def state(self) -> Arrays:
        if self.statistics is None or self.bins is None:
            return {}
        arrays = {f"statistics/{key}": value for key, value in self.statistics.to_arrays().items()}
        arrays |= {"bins": self.bins.of_cell, "misfit": np.array(self.misfit)}
        for number, (cliques, counts) in enumerate(self.measured):
            arrays |= {f"cliques/{number}": contingency.pack_cliques(cliques), f"counts/{number}": counts}
        arrays["variances"] = np.array(self.variances)
        if self.tree is not None:
            arrays["tree/cliques"] = contingency.pack_cliques(self.tree.cliques)
            arrays["tree/parents"] = np.array(self.tree.parents)
            arrays |= {f"tree/belief/{n}": belief for n, belief in enumerate(self.tree.beliefs)}
        if self.settled is not None:
            arrays |= {SETTLED + name: array for name, array in self.settled.to_arrays().items()}
        return arrays

    def restore(self, state: Arrays) -> None:
        if not state:
            return
        prefix = "statistics/"
        parts = {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}
        self.statistics = Statistics.from_arrays(self.plan, parts)
        self.bins = Bins(self.statistics.finest[0], state["bins"])
        self.misfit = float(state["misfit"])
        numbers = range(sum(key.startswith("counts/") for key in state))
        self.measured = [(contingency.unpack_cliques(state[f"cliques/{n}"]), state[f"counts/{n}"]) for n in numbers]
        self.variances = state["variances"].tolist()
        if "tree/cliques" in state:
            cliques = contingency.unpack_cliques(state["tree/cliques"])
            beliefs = [state[f"tree/belief/{n}"] for n in range(len(cliques))]
            self.tree = Tree(cliques, state["tree/parents"].tolist(), beliefs)
            parts = {key.removeprefix(SETTLED): value for key, value in state.items() if key.startswith(SETTLED)}
            self.settled = Settled.from_arrays(self.tree, parts) if parts else None

    def losses(self) -> dict[str, float]:
        """`misfit` is the mean squared error of the model's counts in standard deviations of their noise."""
        return {} if np.isnan(self.misfit) else {"misfit": self.misfit}

    # Party

    def cost(self, ask: Ask, party: str) -> list[Event]:
        return self.planned_costs(party)[self._checked(ask)[0]]

    def planned_costs(self, party: str) -> list[list[Event]]:
        if self.noise is None:
            return [[Unaccounted("exact contingency tables of pairs of columns")]]
        return [[event] for event in self.noise]

    def answer(self, ask: Ask, party: str, data: Rows, local: Arrays, noise: NoiseSource) -> tuple[Answer, Arrays]:
        number, cliques, bins = self._checked(ask)
        event = None if self.noise is None else self.noise[number]
        sides = sides_of(self.plan, party, bins, self.names, cliques)
        counts = with_noise(tables_of(data, bins, self.names, cliques), self.plan, event, noise, sides)
        return Answer({"counts": counts}, weight=self.plan.share(party)), local

    def _checked(self, ask: Ask) -> tuple[int, list[Clique], Bins]:
        """The round, the cliques and the bins of an ask; refuses what the plan does not contain."""
        (number,) = whole_numbers(ask, self.phase, "round")
        require_names(ask.arrays, ("bins", "cliques"))
        if number >= self.asks:
            raise ProtocolError("an ask names no round of the plan; the aggregator runs another plan")
        tables = len(self.pairs) if number == 0 else self.again
        widest = 3 if number > 0 and ask.arrays["cliques"].shape[1:] == (3,) else 2
        cliques = contingency.unpack_cliques(checked(ask.arrays, "cliques", Form((tables, widest), np.int64)))
        known = [one in self.pairs or is_with_target(one, self.target, self.pairs) for one in cliques]
        if len(set(cliques)) != len(cliques) or not all(known) or not all(map(self._countable, cliques)):
            raise ProtocolError("an ask counts other columns than the plan says; the aggregator runs another")
        return number, cliques, asked_bins(ask, self.cells, self.settings.bins)

    def counted_bins(self, ask: Ask) -> Bins:
        """What a party counts by, before it is asked for tables across parties."""
        return self._checked(ask)[2]

    def _countable(self, clique: Clique) -> bool:
        return countable(self.plan, self.names, clique)

    # Post-processing of what was released

    def _evidence(self) -> Evidence:
        bins, tables = self._bins(), list[Measurement]()
        for (cliques, sums), variance in zip(self.measured, self.variances, strict=True):
            each = table_variances(self.plan, self.names, cliques, variance)
            tables += measured_tables(sums, cliques, self._sizes(), each)
        histograms = measured_columns(self._statistics(), bins, self.names)
        return Evidence.of(histograms, tables, possible.zeros(self.plan.constraints, bins, self.names))

    def _again(self) -> list[Clique]:
        """The pairs the model so far is made of, worthiest first, with the target where that pays; the most surprising
        others fill what the plan has paid for."""
        chosen = [clique for clique in self._selected() if clique in self.pairs]
        variance = summed_variance(self.plan, self.noise[len(self.measured)]) if self.noise else 0.0
        tables = with_target(chosen, self.target, self._sizes(), variance, self.plan.rows, self._countable)
        rest = [clique for clique in self._evidence().pairs_by_surprise() if clique not in chosen]
        return list(dict.fromkeys(tables + rest + chosen))[: self.again]

    def _selected(self) -> list[Clique]:
        return self._evidence().select(self.target, self.settings.model_size_mb)

    def _statistics(self) -> Statistics:
        if self.statistics is None:
            raise ProtocolError("the model was used before the statistics were known; begin with them")
        return self.statistics

    def _sizes(self) -> list[int]:
        return [self._bins().size(name) for name in self.names]

    def _bins(self) -> Bins:
        if self.bins is None:
            raise ProtocolError("the model was used before the statistics were known; begin with them")
        return self.bins

    def _asked(self, number: int) -> Array:
        ask = self.ask(number)
        if ask is None:
            raise ProtocolError("an answer came back to a question that was never asked")
        return ask.arrays["cliques"]
