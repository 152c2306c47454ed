"""A model of averaged weights behind the interface: what is the same in every such family.

begin   the encoding from the released histogram, fresh weights, what the model makes of both   (aggregator)
ask     the weights, the encoding, the released frequencies, the number of steps
answer  share × change of the weights after that many steps                                     (party)
absorb  the server optimiser takes the average change; a running average is kept over rounds
        (with exchange 'gradients': answer = sum of one step's gradients, absorb = the step; see `summed`)
        (with update 'signds': answer = votes for weights, absorb = a step for each; see `voting`)
sample  make, choose, fit to the histograms                                                     (aggregator)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from synth.encoding.features import Features
from synth.encoding.records import Records
from synth.encoding.rows import Rows
from synth.errors import PlanError, ProtocolError
from synth.interface import Answer, Array, Arrays, Ask, Scalar, Sum, Synthesizer
from synth.messages.asked import Form
from synth.neural.device import chosen, on
from synth.neural.drawing import Drawing, codes_of
from synth.neural.encoded import EncodedRows, RowsOnDemand, fits
from synth.neural.free_steps import learn
from synth.neural.groups import VotingRound
from synth.neural.model import Model, RowLossModel
from synth.neural.pretraining_settings import Pretraining
from synth.neural.question import Question, read
from synth.neural.released import Released
from synth.neural.server import running_average
from synth.neural.streams import Stream
from synth.neural.summed import GRADIENT, PartyStep, ServerStep, mean_gradient
from synth.neural.training import LocalRound, hold_near, train
from synth.neural.voting import DECAYS, Tally
from synth.neural.weights import forms, load, to_arrays
from synth.privacy.events import Event
from synth.privacy.noise import NoiseSource, seeded_source
from synth.statistics.histograms import Statistics

AVERAGE, RELEASED, SERVER, HEARD = "average/", "statistics/", "server/", "heard/"
ENCODING_SEED = "encoding_seed"  # a party's own; it drew the modes of its numbers


@dataclass(frozen=True, eq=False)
class Encoded:
    """A party's rows as the networks see them, kept between rounds."""

    data: Records
    seed: bytes
    layout: bytes
    rows: EncodedRows


def part_of(state: Arrays, prefix: str) -> Arrays:
    return {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}


class NeuralSynthesizer(Synthesizer):
    def __init__(self, model: Model[Any]) -> None:
        self.model, self.plan, self.schedule = model, model.plan, model.schedule
        self.device = chosen()
        self.absorbed = self.seed = 0
        self.weights: Arrays = {}
        self.average: Arrays = {}
        self.server: Arrays = {}  # the server optimiser's
        self.heard: Arrays = {}  # of bits that groups send with their votes
        self.encoded: dict[str, Encoded] = {}

    # ── aggregator ──

    def begin(self, statistics: Statistics, seed: int) -> None:
        self.released = Released.of(self.plan, statistics, self.schedule.bins)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = self.model.network(self.released.features).to(self.device)
            with on(self.device):
                self.model.begin(network, self.released, Stream(seed))
        self.weights, self.average = to_arrays(network), to_arrays(network)
        self.seed = seed

    def learn(self, rows: Records, luck: NoiseSource) -> None:
        """Plain steps on rows that are nobody's, before anybody is asked for a step (see `pretraining`). From then on
        these rows' histograms are what drawn rows are fitted to: the counts that they come from know more of a column
        than the first histograms do."""
        features = self.released.features
        seen = Statistics.seen(self.plan, rows, self.released.statistics.covered)
        self.released = Released.of(self.plan, seen, features=features)
        with on(self.device):
            network = self._loaded(features, self.weights)
            encoded = torch.as_tensor(features.encode(rows, Stream.of(luck).rng))
            learn(self.model, network, self.released, encoded, self.pretrain.steps, luck)
        self.weights, self.average = to_arrays(network), to_arrays(network)

    def ask(self, number: int) -> Ask | None:
        if number >= self.schedule.regime.rounds:
            return None
        options: dict[str, Scalar] = {"phase": self.phase, "round": number, "steps": self.schedule.steps(number)}
        return Ask(
            arrays=self.weights | self.released.asked(self.plan, self.schedule.regime.weighting),
            options=options | self._decays(),
        )

    def _decays(self) -> dict[str, Scalar]:
        voting = self.schedule.voting
        return {name: int(self.heard.get(name, 0)) for name in (voting.options if voting else ())}

    def absorb(self, total: Sum) -> None:
        if self.schedule.voting is not None:
            self._count(Tally(self.schedule.voting), total)
        elif self.schedule.sums_gradients:
            with on(self.device):
                self._step(mean_gradient(self.schedule, total))
        else:
            self._average(total)
        memory = self.schedule.regime.averaging if self.absorbed else 0.0
        self.average = running_average(self.average, self.weights, memory)
        self.absorbed += 1

    def _count(self, tally: Tally, total: Sum) -> None:
        decays, pace = int(self.heard.get(DECAYS, 0)), 1.0 if self._decays() else self.schedule.pace(self.absorbed)
        change = tally.change(total, self.weights, decays, pace)
        self.weights, self.server = self.model.server(self.weights, change, self.server)
        self.heard = tally.heard(self.heard, total)

    def _average(self, total: Sum) -> None:
        if set(total.arrays) != set(self.weights) or total.weight <= 0:
            raise ProtocolError("the summed change does not fit the weights; the parties run another version")
        change = {name: array / total.weight for name, array in total.arrays.items()}
        self.weights, self.server = self.model.server(self.weights, change, self.server)

    def _step(self, opened: Array) -> None:
        """The rest of the step whose gradient was summed; its luck depends on no row."""
        released, noise = self.released, seeded_source(self.seed, "server", self.absorbed)
        network = self._loaded(released.features, self.weights)
        optimizers = self.model.optimizers(network)
        asked = Question(released.features, released.frequencies, 1.0)
        nobody = torch.zeros(0, released.features.width)
        half = ServerStep(self.schedule, asked, nobody, "", noise, opened)
        step, pace = self.model.step(network, half, optimizers), self.schedule.pace(self.absorbed)
        self.server = train(step, optimizers, 1, self.server, noise, pace)
        self.weights = to_arrays(network)

    def sample(self, rows: int, seed: int, where: dict[str, str] | None = None) -> Records:
        with on(self.device):
            network = self._loaded(self.released.features, self.average)
            self.model.settle(network, self.released)
            draw = partial(self.model.draw, network, self.released)
            drawing = Drawing(draw, self.released, self.model.candidates, self.model.fitted)
            return drawing.sample(rows, seed, codes_of(self.plan.modelled, where or {}))

    def state(self) -> Arrays:
        parts = {AVERAGE: self.average, SERVER: self.server, HEARD: self.heard}
        parts |= {RELEASED: self.released.statistics.to_arrays()}
        stored = {prefix + name: array for prefix, part in parts.items() for name, array in part.items()}
        return self.weights | self.released.features.to_arrays() | stored | self._counters()

    def _counters(self) -> Arrays:
        """Where nothing happens at the aggregator by chance, its seed is nobody's affair."""
        seed = {"seed": np.array(self.seed)} if self.schedule.sums_gradients else {}
        return {"absorbed": np.array(self.absorbed)} | seed

    def restore(self, state: Arrays) -> None:
        statistics = Statistics.from_arrays(self.plan, part_of(state, RELEASED))
        features = Features.from_arrays(self.plan.modelled, state)
        self.released = Released.of(self.plan, statistics, features=features)
        names = self._forms(self.released.features)
        self.average = {name: state[AVERAGE + name] for name in names}
        self.weights = {name: state[name] for name in names}
        self.server, self.heard = part_of(state, SERVER), part_of(state, HEARD)
        self.absorbed, self.seed = int(state["absorbed"]), int(state.get("seed", 0))

    def losses(self) -> dict[str, float]:
        with torch.no_grad(), on(self.device):
            network = self._loaded(self.released.features, self.weights)
            return self.model.figures(network, self.released, Stream(self.absorbed))

    # ── party ──

    def cost(self, ask: Ask, party: str) -> list[Event]:
        number = self.schedule.checked(ask)
        self.read(ask, party)
        return self.schedule.cost(number, party)

    def planned_costs(self, party: str) -> list[list[Event]]:
        return [self.schedule.cost(number, party) for number in range(self.schedule.regime.rounds)]

    def answer(self, ask: Ask, party: str, data: Rows, local: Arrays, noise: NoiseSource) -> tuple[Answer, Arrays]:
        with on(self.device):
            return self._answer(ask, party, data, local, noise)

    def _answer(self, ask: Ask, party: str, data: Rows, local: Arrays, noise: NoiseSource) -> tuple[Answer, Arrays]:
        number = self.schedule.checked(ask)
        steps = self.schedule.steps(number)
        asked = self.read(ask, party)
        network = self._loaded(asked.features, ask.arrays)
        before, optimizers = to_arrays(network), self.model.optimizers(network)
        if steps:
            local = local if ENCODING_SEED in local else local | {ENCODING_SEED: noise.child("modes").uint64(4)}
            rows = self._encode(party, data.at_hand(), asked.features, local[ENCODING_SEED])
            if self.schedule.voting is not None:
                small = self.schedule.voting.small(int(ask.options.get(DECAYS, 0)))
                votes = VotingRound(self.schedule.voting, party, noise).answer(network, self._group_loss, rows, small)
                return Answer(votes, weight=asked.share), local
            if self.schedule.sums_gradients:
                half = PartyStep(self.schedule, asked, rows, party, noise)
                summand = half.summand(self.model.step(network, half, optimizers))
                return Answer({GRADIENT: summand}, weight=asked.share), local
            hold_near(optimizers, self.schedule.regime.server.proximal)
            step = self.model.step(network, LocalRound(self.schedule, asked, rows, party, noise), optimizers)
            local = train(step, optimizers, steps, local, noise, self.schedule.pace(number))
        change = {name: asked.share * (after - before[name]) for name, after in to_arrays(network).items()}
        return Answer(change, weight=asked.share), local

    def _group_loss(self, network: nn.Module, rows: Tensor, there: Tensor, stream: Stream) -> Tensor:
        if not isinstance(self.model, RowLossModel):
            raise PlanError("groups vote in families of one network and one loss a row only")
        return self.model.group_loss(network, rows, there, stream)

    def read(self, ask: Ask, party: str) -> Question:
        """The whole ask but its options, or a refusal."""
        return read(self.plan, self.schedule.regime.weighting, self.schedule.bins, self._forms, ask, party)

    def _encode(self, party: str, data: Records, features: Features, seed: Array) -> EncodedRows:
        layout = b"".join(array.tobytes() for array in features.to_arrays().values())
        found = self.encoded.get(party)
        if found is None or found.data is not data or (found.seed, found.layout) != (seed.tobytes(), layout):
            rows: EncodedRows = RowsOnDemand(data, features, seed)
            if self.schedule.faithful or fits(data, features):
                rows = torch.as_tensor(features.encode(data, np.random.default_rng(seed)))
            found = self.encoded[party] = Encoded(data, seed.tobytes(), layout, rows)
        return found.rows

    # ── both ──

    @property
    def pretrain(self) -> Pretraining:
        if (found := self.schedule.regime.pretrain) is None:
            raise PlanError("the plan says nothing of pretraining; add 'pretrain' to its synthesizer")
        return found

    def leave_room_for(self, events: Callable[[], Iterable[Event]]) -> None:
        """In the budget: the noise of the steps is found beside these."""
        self.schedule = self.model.schedule = replace(self.schedule, beside=events)

    def _forms(self, features: Features) -> dict[str, Form]:
        """Of every weight. On torch's meta device, which has shapes and no values: nothing is drawn."""
        with torch.device("meta"):
            return forms(self.model.network(features))

    def _loaded(self, features: Features, arrays: Arrays) -> nn.Module:
        """The network with these weights; torch's generator is left as it was."""
        with torch.random.fork_rng(devices=[]), torch.device("cpu"):
            network: nn.Module = self.model.network(features)
        load(network, arrays)
        return network.to(self.device)
