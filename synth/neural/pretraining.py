"""A network that learns rows of the plan's own `marginals` before it is shown to anybody's rows.

    statistics ─► counts (a share of ρ) ─► fitted model ─► rows ─► plain steps ─► weights ─► private steps (the rest)
                  asks 0 … k - 1           post-processing, at the aggregator                asks k …

Counts and steps are charged like any others, each before it is computed, and their noise is found by composing both
with the statistics. What happens in between depends on released numbers and on the run's seed alone: it is free, and a
resumed run repeats it or finds its result in the checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from synth.budget import cut_short
from synth.encoding.records import Records
from synth.encoding.rows import Rows
from synth.errors import ProtocolError
from synth.family import FamilySettings
from synth.interface import Answer, Arrays, Ask, Sum, Synthesizer
from synth.neural.synthesizer import NeuralSynthesizer, part_of
from synth.plan import Plan
from synth.privacy.events import Event
from synth.privacy.noise import NoiseSource, seeded_source
from synth.statistics.histograms import Statistics

COUNTED, NETWORK = "counted/", "network/"
ROWS = 50_000  # drawn from the fitted counts


def counting_plan(network: NeuralSynthesizer, settings_of: Callable[[str], type[FamilySettings]]) -> Plan:
    """The network's plan as if it ended with the counts; nobody but the family that counts sees it."""
    counting = network.pretrain.counting
    family = settings_of(counting["name"]).model_validate(counting)
    changes = {"synthesizer": family, "privacy": cut_short(network.plan), "assessment": None, "gate": None}
    return network.plan.model_copy(update=changes)


class Pretrained(Synthesizer):
    """First the asks of the one, then those of the other."""

    def __init__(self, counted: Synthesizer, network: NeuralSynthesizer) -> None:
        self.counted, self.network = counted, network
        self.counts = network.pretrain.asks(private=network.plan.privacy != "none")
        self.absorbed = self.seed = 0
        any_party = network.plan.parties[0].name  # counts cost every party the same
        network.leave_room_for(lambda: counted.whole_cost(any_party))

    # ── aggregator ──

    def begin(self, statistics: Statistics, seed: int) -> None:
        self.seed = seed
        self.counted.begin(statistics, seed)
        self.network.begin(statistics, seed)

    def ask(self, number: int) -> Ask | None:
        if number < self.counts:
            return self.counted.ask(number)
        ask = self.network.ask(number - self.counts)
        return ask and replace(ask, options=ask.options | {"round": number})

    def absorb(self, total: Sum) -> None:
        (self.counted if self.absorbed < self.counts else self.network).absorb(total)
        self.absorbed += 1
        if self.absorbed == self.counts:
            self.network.learn(self.counted.sample(ROWS, self.seed), seeded_source(self.seed, "pretraining"))

    def sample(self, rows: int, seed: int, where: dict[str, str] | None = None) -> Records:
        return self.network.sample(rows, seed, where)

    def state(self) -> Arrays:
        parts = {COUNTED: self.counted.state(), NETWORK: self.network.state()}
        stored = {prefix + name: array for prefix, part in parts.items() for name, array in part.items()}
        return stored | {"seed": np.array(self.seed), "absorbed": np.array(self.absorbed)}

    def restore(self, state: Arrays) -> None:
        self.counted.restore(part_of(state, COUNTED))
        self.network.restore(part_of(state, NETWORK))
        self.seed, self.absorbed = int(state["seed"]), int(state["absorbed"])

    def losses(self) -> dict[str, float]:
        return (self.counted if self.absorbed < self.counts else self.network).losses()

    # ── party ──

    def cost(self, ask: Ask, party: str) -> list[Event]:
        asking, asked = self._routed(ask)
        return asking.cost(asked, party)

    def planned_costs(self, party: str) -> list[list[Event]]:
        return self.counted.planned_costs(party) + self.network.planned_costs(party)

    def answer(self, ask: Ask, party: str, data: Rows, local: Arrays, noise: NoiseSource) -> tuple[Answer, Arrays]:
        asking, asked = self._routed(ask)
        return asking.answer(asked, party, data, local, noise)

    def _routed(self, ask: Ask) -> tuple[Synthesizer, Ask]:
        """Whose ask it is, by its number in the plan alone, and the ask as that one counts."""
        number = ask.options.get("round")
        if type(number) is not int or number < 0:
            raise ProtocolError("a training ask must say its round, a whole number from 0")
        if number < self.counts:
            return self.counted, ask
        return self.network, replace(ask, options=ask.options | {"round": number - self.counts})
