"""One ask: how often each label of the target meets each bin of every other column."""

from __future__ import annotations

import numpy as np
from synth.synthesizers.counting_toy.settings import ToySettings

from synth.constraints import determined
from synth.counting import possible
from synth.counting.binning import bins_worth_counting
from synth.counting.drawing import Drawing
from synth.counting.estimates import measured_columns, measured_tables
from synth.counting.evidence import Evidence
from synth.counting.party_side import asked_bins, tables_of, with_noise
from synth.counting.schedule import divided_noise
from synth.counting.tree import Tree
from synth.encoding.bins import Bins, cell_weights
from synth.encoding.contingency import Clique
from synth.encoding.records import Records
from synth.encoding.rows import Rows
from synth.errors import PlanError, ProtocolError
from synth.grid import grid_of
from synth.interface import Answer, Array, Arrays, Ask, Sum, Synthesizer
from synth.messages.asked import require_names, whole_numbers
from synth.plan import Plan
from synth.privacy.events import Event, Unaccounted
from synth.privacy.noise import NoiseSource
from synth.statistics.histograms import Statistics

RELEASED = "statistics/"


class Toy(Synthesizer):
    def __init__(self, plan: Plan) -> None:
        if not isinstance(plan.synthesizer, ToySettings) or plan.table.target is None:
            raise PlanError("the toy needs its own settings and a target")
        self.plan, self.settings = plan, plan.synthesizer
        self.cells = grid_of(plan)
        self.names = [name for name in plan.table.released if name not in determined(plan.constraints)]
        middle = self.names.index(plan.table.target)
        self.pairs: list[Clique] = [(min(n, middle), max(n, middle)) for n in range(len(self.names)) if n != middle]
        self.noise = divided_noise(plan, self.cells.queries, [len(self.pairs)], [1.0])

    def begin(self, statistics: Statistics, seed: int) -> None:
        self.statistics = statistics
        self.bins = bins_worth_counting(self.plan, statistics, self.noise or [], self.settings.bins, self.settings.bins)

    def ask(self, number: int) -> Ask | None:
        return None if number else Ask({"bins": self.bins.of_cell}, {"phase": self.phase, "round": number})

    def absorb(self, total: Sum) -> None:
        event = self.noise[0] if self.noise else None
        counts = np.rint(total.arrays["counts"]).astype(np.int64)
        self._fit(*self.statistics.over_the_same_rows(self.plan, total, counts, event))

    def sample(self, rows: int, seed: int, where: dict[str, str] | None = None) -> Records:
        weights = cell_weights(self.bins, self.statistics.finest[1], self.statistics.variance**0.5)
        drawing = Drawing(self.plan.table, self.plan.constraints, self.names, self.bins, weights)
        return drawing.rows(self.tree, rows, np.random.default_rng(seed), where or {})

    def state(self) -> Arrays:
        arrays = {RELEASED + key: value for key, value in self.statistics.to_arrays().items()}
        arrays |= {"bins": self.bins.of_cell}
        return arrays | ({"counts": self.counts, "variance": np.array(self.variance)} if hasattr(self, "tree") else {})

    def restore(self, state: Arrays) -> None:
        released = {key.removeprefix(RELEASED): value for key, value in state.items() if key.startswith(RELEASED)}
        self.statistics, self.bins = Statistics.from_arrays(self.plan, released), Bins(self.cells, state["bins"])
        if "counts" in state:
            self._fit(state["counts"], float(state["variance"]))

    def cost(self, ask: Ask, party: str) -> list[Event]:
        self._checked(ask)
        return self.planned_costs(party)[0]

    def planned_costs(self, party: str) -> list[list[Event]]:
        return [[self.noise[0] if self.noise else Unaccounted("exact tables of the target's pairs")]]

    def answer(self, ask: Ask, party: str, data: Rows, local: Arrays, noise: NoiseSource) -> tuple[Answer, Arrays]:
        counts = tables_of(data, self._checked(ask), self.names, self.pairs)
        noisy = with_noise(counts, self.plan, self.noise[0] if self.noise else None, noise)
        return Answer({"counts": noisy}, weight=self.plan.share(party)), local

    def _checked(self, ask: Ask) -> Bins:
        (number,) = whole_numbers(ask, self.phase, "round")
        require_names(ask.arrays, ("bins",))
        if number:
            raise ProtocolError("an ask names no round of the plan")
        return asked_bins(ask, self.cells, self.settings.bins)

    def _fit(self, counts: Array, variance: float) -> None:
        self.counts, self.variance = counts, variance
        tables = measured_tables(counts, self.pairs, [self.bins.size(name) for name in self.names], variance)
        columns = measured_columns(self.statistics, self.bins, self.names)
        evidence = Evidence.of(columns, tables, possible.zeros(self.plan.constraints, self.bins, self.names))
        self.tree: Tree = evidence.fit(self.pairs, iterations=100).tree
