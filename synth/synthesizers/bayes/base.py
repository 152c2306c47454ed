"""What both forms of `bayes` share: the modelled columns, the network and the rows drawn from it."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from synth.constraints import computed
from synth.counting.drawing import Drawing
from synth.encoding import contingency
from synth.encoding.bins import Bins
from synth.encoding.cells import Cells
from synth.encoding.records import Records
from synth.encoding.scales import Floats
from synth.errors import PlanError, ProtocolError
from synth.interface import Array, Arrays, Sum, Synthesizer
from synth.plan import Plan
from synth.statistics.histograms import Statistics
from synth.synthesizers.bayes.network import Network, Node
from synth.synthesizers.bayes.settings import BayesSettings

RELEASED = "statistics/"


class BayesBase(Synthesizer):
    """Columns that no relation determines are numbered in schema order; the network exists once all is absorbed."""

    def __init__(self, plan: Plan, settings: BayesSettings, cells: Cells) -> None:
        self.plan, self.settings, self.cells = plan, settings, cells
        related = computed(plan.constraints)
        self.names = [name for name in plan.modelled.released if name not in related]
        if len(self.names) < 2:
            raise PlanError("'bayes' needs two columns that no relation determines; this schema has fewer")
        self.asks, self.seed, self.absorbed = plan.family.asks, 0, 0
        self.statistics: Statistics | None = None
        self.bins: Bins | None = None
        self.network: Network | None = None

    def counted_cells(self, statistics: Statistics) -> Cells:
        """The cells that bins are made of; a model may have been saved with others than are counted today."""
        return self.cells

    @abstractmethod
    def cell_weights(self) -> Floats:
        """How the rows of a bin spread over its cells, for all cells."""

    def sample(self, rows: int, seed: int, where: dict[str, str] | None = None) -> Records:
        if self.network is None:
            raise ProtocolError("rows were asked for before the network was learnt; run the plan to its end first")
        drawing = Drawing(self.plan.modelled, self.plan.constraints, self.names, self.known_bins(), self.cell_weights())
        return drawing.rows(self.network, rows, np.random.default_rng(seed), where or {})

    def state(self) -> Arrays:
        if self.statistics is None or self.bins is None:
            return {}
        arrays = {RELEASED + key: value for key, value in self.statistics.to_arrays().items()}
        arrays |= {"bins": self.bins.of_cell, "seed": np.array(self.seed), "absorbed": np.array(self.absorbed)}
        if self.network is not None:
            arrays["network/columns"] = np.array([node.column for node in self.network.nodes])
            arrays["network/parents"] = contingency.pack_cliques([node.parents for node in self.network.nodes])
            arrays |= {f"network/table/{number}": node.table for number, node in enumerate(self.network.nodes)}
        return arrays

    def restore(self, state: Arrays) -> None:
        if not state:
            return
        released = {key.removeprefix(RELEASED): value for key, value in state.items() if key.startswith(RELEASED)}
        self.statistics = Statistics.from_arrays(self.plan, released)
        self.bins = Bins(self.counted_cells(self.statistics), state["bins"])
        self.seed, self.absorbed = int(state["seed"]), int(state["absorbed"])
        if "network/columns" in state:
            parents = contingency.unpack_cliques(state["network/parents"])
            columns = [int(column) for column in state["network/columns"]]
            tables = [state[f"network/table/{number}"] for number in range(len(columns))]
            self.network = Network([Node(*one) for one in zip(columns, parents, tables, strict=True)])

    def known_statistics(self) -> Statistics:
        if self.statistics is None:
            raise ProtocolError("the network was used before the statistics were known; begin with them")
        return self.statistics

    def known_bins(self) -> Bins:
        if self.bins is None:
            raise ProtocolError("the network was used before the statistics were known; begin with them")
        return self.bins

    def sizes(self) -> list[int]:
        return [self.known_bins().size(name) for name in self.names]


def summed(total: Sum, name: str, shape: tuple[int, ...]) -> Array:
    """One array of a sum, if it has the shape that was asked for."""
    array = total.arrays.get(name)
    if array is None or array.shape != shape:
        raise ProtocolError("an answer of the wrong shape came back; the parties run another version")
    return array
