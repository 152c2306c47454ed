"""DP-Fed-CTGAN (Leitner 2023) behind the interface; specification: rigorous by default, the published protocol under
`profile: faithful`, Fed-CTGAN with `privacy: none`, Fed-TGAN with `weighting: similarity`, CTGAN with one party.

    begin   mixtures and conditions from the released histogram; the generator learns the histograms  (aggregator)
    ask     the weights, the encoding, the condition frequencies, the number of steps
    answer  share × change of both networks after that many DP-SGD steps                              (party)
    absorb  add the changes; keep a running average over rounds
    sample  make, choose, fit to the histograms                                                       (aggregator)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from synth.encoding.features import Features
from synth.encoding.mixtures import Mixture, fit_cells
from synth.encoding.records import Records
from synth.encoding.scales import Floats
from synth.errors import InputError, PlanError, ProtocolError
from synth.interface import Answer, Array, Arrays, Ask, Sum, Synthesizer
from synth.plan import Plan
from synth.privacy.events import Event
from synth.privacy.noise import NoiseSource
from synth.statistics.histograms import Statistics
from synth.statistics.similarity import party_shares, similarity_weights
from synth.synthesizers.ctgan import question
from synth.synthesizers.ctgan.conditions import Conditions
from synth.synthesizers.ctgan.drawing import Drawing, settle_batch_norm
from synth.synthesizers.ctgan.question import FREQUENCIES, SHARES
from synth.synthesizers.ctgan.schedule import Schedule
from synth.synthesizers.ctgan.settings import CtganSettings
from synth.synthesizers.ctgan.steps import made_up
from synth.synthesizers.ctgan.streams import Stream
from synth.synthesizers.ctgan.training import LocalTraining
from synth.synthesizers.ctgan.warm_start import warm_start
from synth.synthesizers.ctgan.weights import Networks

AVERAGE, RELEASED = "average/", "statistics/"
RAREST = 1e-6  # no released share is taken for an exact 0 in a logarithm


@dataclass(frozen=True, eq=False)
class Encoded:
    """A party's rows as the networks see them, kept between rounds; `seed` drew the modes."""

    data: Records
    seed: bytes
    layout: bytes
    rows: Tensor  # [n, row width]


class Ctgan(Synthesizer):
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        if not isinstance(plan.synthesizer, CtganSettings):
            raise PlanError(f"the plan's synthesizer is '{plan.synthesizer.name}', not 'ctgan'.")
        self.settings = plan.synthesizer
        self.schedule = Schedule(plan, self.settings)
        self.schedule.check()
        self.absorbed = 0
        self.weights: Arrays = {}
        self.average: Arrays = {}
        self.shares: Arrays = {}  # every party's weight, where the plan weights by similarity
        self.encoded: dict[str, Encoded] = {}

    # ── aggregator ──

    def begin(self, statistics: Statistics, seed: int) -> None:
        self._adopt(statistics)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            networks = Networks.of(self.settings, self.features)
            warm_start(
                networks.generator,
                self.features,
                self.conditions,
                self._block_shares(),
                self.settings.generator.warm_start_steps,
                Stream(seed),
            )
        self.weights, self.average = networks.to_arrays(), networks.to_arrays()

    def ask(self, number: int) -> Ask | None:
        if number >= self.settings.rounds:
            return None
        frequencies = {FREQUENCIES + name: self.probabilities[name] for name in self.plan.table.discrete}
        return Ask(
            arrays=self.weights | self.features.to_arrays() | frequencies | self.shares,
            options={"phase": self.phase, "round": number, "steps": self.schedule.steps(number)},
        )

    def absorb(self, total: Sum) -> None:
        if set(total.arrays) != set(self.weights) or total.weight <= 0:
            raise ProtocolError("the summed change does not fit the weights; the parties run another version")
        self.weights = {
            name: (value + total.arrays[name] / total.weight).astype(np.float32) for name, value in self.weights.items()
        }
        memory = self.settings.averaging if self.absorbed else 0.0
        self.average = {
            name: (memory * value + (1 - memory) * self.weights[name]).astype(np.float32)
            for name, value in self.average.items()
        }
        self.absorbed += 1

    def sample(self, rows: int, seed: int, where: dict[str, str] | None = None) -> Records:
        return self._drawing().sample(rows, seed, self._codes(where or {}))

    def state(self) -> Arrays:
        released = {RELEASED + name: array for name, array in self.statistics.to_arrays().items()}
        average = {AVERAGE + name: array for name, array in self.average.items()}
        return self.weights | average | self.features.to_arrays() | released | {"absorbed": np.array(self.absorbed)}

    def restore(self, state: Arrays) -> None:
        released = {k.removeprefix(RELEASED): v for k, v in state.items() if k.startswith(RELEASED)}
        self._adopt(Statistics.from_arrays(self.plan, released), Features.from_arrays(self.plan.table, state))
        names = question.weights(self.settings, self.features)
        self.average = {name: state[AVERAGE + name] for name in names}
        self.weights = {name: state[name] for name in names}
        self.absorbed = int(state["absorbed"])

    def losses(self) -> dict[str, float]:
        """How the latest networks judge fresh made-up rows."""
        networks = Networks.loaded(self.settings, self.features, self.weights)
        stream = Stream(self.absorbed)
        with torch.no_grad():
            asked = self.conditions.draw(self.settings.discriminator.fake_batch, stream)
            score = networks.discriminator(*made_up(networks.generator, asked, self.features.spans, stream))
        return {"generator": float(F.softplus(-score).mean()), "discriminator": float(F.softplus(score).mean())}

    # ── party ──

    def cost(self, ask: Ask, party: str) -> list[Event]:
        number = self.schedule.checked(ask)
        question.read(self.plan, self.settings, ask, party)
        return self.schedule.cost(number, party)

    def planned_costs(self, party: str) -> list[list[Event]]:
        return [self.schedule.cost(number, party) for number in range(self.settings.rounds)]

    def answer(self, ask: Ask, party: str, data: Records, local: Arrays, noise: NoiseSource) -> tuple[Answer, Arrays]:
        steps = self.schedule.steps(self.schedule.checked(ask))
        asked = question.read(self.plan, self.settings, ask, party)
        features, share = asked.features, asked.share
        networks = Networks.loaded(self.settings, features, ask.arrays)
        before = networks.to_arrays()
        if steps:
            local = local if "encoding_seed" in local else local | {"encoding_seed": noise.child("modes").uint64(4)}
            rows = self._encode(party, data, features, local["encoding_seed"])
            conditions = self._conditions(features, asked.frequencies)
            training = LocalTraining(self.schedule, features, conditions, rows, party)
            local = training.run(networks, steps, local, noise)
        change = {name: share * (after - before[name]) for name, after in networks.to_arrays().items()}
        return Answer(change, weight=share), local

    # ── shared ──

    def _adopt(self, statistics: Statistics, features: Features | None = None) -> None:
        """Everything that follows from the released statistics."""
        self.statistics = statistics
        self.probabilities = statistics.cells.probabilities(statistics.counts, float(np.sqrt(statistics.variance)))
        self.features = features or Features(self.plan.table, self._mixtures())
        self.conditions = self._conditions(self.features, self.probabilities)
        if self.settings.weighting == "similarity":
            rows = {party.name: party.rows for party in self.plan.parties}
            sigma = float(np.sqrt(statistics.variance / len(statistics.by_party)))
            weights = similarity_weights(statistics.cells, statistics.by_party, sigma, rows)
            found = dict(zip(statistics.by_party, weights.tolist(), strict=True))
            self.shares = {SHARES: party_shares(self.plan, found)}

    def _mixtures(self) -> Mapping[str, Mixture]:
        cells, found = self.statistics.cells, self.statistics.mixtures
        return found or {name: fit_cells(cells, name, self.probabilities[name]) for name in cells.scales}

    def _conditions(self, features: Features, frequencies: Mapping[str, Floats]) -> Conditions:
        return Conditions(features, frequencies, None if self.schedule.faithful else self.plan.table.target)

    def _block_shares(self) -> dict[int, Tensor]:
        """Released frequencies of every one-hot block, by its start; a missing number is the last mode."""
        shares = {}
        for span in self.features.spans:
            released = self.probabilities[span.column]
            if span.kind == "mode":
                weights = self.features.mixtures[span.column].weights
                missing = released[-1:] if span.width > len(weights) else released[:0]
                released = np.append(weights * (1 - missing.sum()), missing)
            shares[span.start] = torch.from_numpy(np.maximum(released, RAREST)).float()
        return shares

    def _drawing(self) -> Drawing:
        networks = Networks.loaded(self.settings, self.features, self.average)
        settle_batch_norm(networks.generator, self.conditions)
        critic, fitted = self.settings.discriminator, not self.schedule.faithful
        return Drawing(
            networks.generator,
            networks.discriminator,
            self.features,
            self.conditions,
            self.statistics.cells,
            self.probabilities,
            candidates=self.settings.candidates,
            scored=fitted and critic.loss == "cross-entropy" and critic.pac == 1,
            fitted=fitted,
        )

    def _codes(self, where: Mapping[str, str]) -> dict[str, int]:
        discrete, codes = self.plan.table.discrete, {}
        for column, label in where.items():
            if column not in discrete:
                raise InputError(f"'{column}' is not a discrete column; rows can be fixed by {', '.join(discrete)}.")
            if label not in discrete[column].labels:
                raise InputError(f"column '{column}' has no label '{label}'; choose one that the schema declares.")
            codes[column] = discrete[column].labels.index(label)
        return codes

    def _encode(self, party: str, data: Records, features: Features, seed: Array) -> Tensor:
        layout = b"".join(array.tobytes() for array in features.to_arrays().values())
        found = self.encoded.get(party)
        if found is None or found.data is not data or (found.seed, found.layout) != (seed.tobytes(), layout):
            rows = torch.from_numpy(features.encode(data, np.random.default_rng(seed)))
            found = self.encoded[party] = Encoded(data, seed.tobytes(), layout, rows)
        return found.rows
