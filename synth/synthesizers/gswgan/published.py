"""GS-WGAN as published (Chen, Orekondy and Fritz 2020; for tables Nieminen 2022), with its gaps: `profile: faithful`.

ask     rows that the generator made up: some for critics to learn from, some to be judged       (aggregator)
answer  one critic of many, drawn in secret, learns and answers for all judged rows: its slopes, (party)
        clipped and noised row by row
absorb  the slopes go back through the generator, one step of Adam

Every party has many critics, each on a shard of its rows, warmed up against a generator of its own when it is first
drawn. The paper's accountant counts the judged rows of a step as so many draws of a critic; one critic answers all of
them, and remembers what it learned. What a plan's ε is nominal of, and what the steps cost when they are composed as
they are run (memory left out of account), is in every charge.

NOTE[DIFF]: numbers are written by mixtures fitted to the released histogram, not by minima and maxima of exact rows, so
that they can be drawn back under the public schema; one-hot blocks are -1 and 1, all outputs tanh, as in the thesis.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import sqrt

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Adam

from synth.encoding.features import Features
from synth.encoding.records import Records
from synth.encoding.rows import Rows
from synth.errors import PlanError, ProtocolError
from synth.interface import Answer, Array, Arrays, Ask, Sum, Synthesizer
from synth.messages.asked import Form, checked, require_names, whole_numbers
from synth.neural.drawing import Codes, Drawing, codes_of
from synth.neural.model import settings_of
from synth.neural.question import asked_features
from synth.neural.released import Released
from synth.neural.streams import Stream
from synth.neural.weights import load, load_moments, moments_to_arrays, set_gradient, to_arrays
from synth.plan import Plan
from synth.privacy.accounting import as_units, pld_epsilon
from synth.privacy.calibration import steps_affordable
from synth.privacy.events import Event, SampledGaussian, Unaccounted
from synth.privacy.noise import NoiseSource, seeded_source
from synth.statistics.histograms import Statistics
from synth.synthesizers.gswgan.settings import GswganSettings, PublishedGan

PENALTY, CLIP = 10.0, 1.0
CODE, LEARNING_RATE, BETAS = 32, 1e-4, (0.5, 0.9)
SENSITIVITY = 2 * CLIP  # of one row's slopes: the critic may be any other
GRID = 0.02  # of losses in the hundreds
LATTICE = 2.0**-20  # noise is whole multiples of it
MADE_UP, JUDGED, SLOPES, RELEASED = "made_up", "judged", "slopes", "statistics/"


def generator(width: int) -> nn.Sequential:
    """The author's code: BatchNorm throughout, on the batch at hand."""
    layers: list[nn.Module] = []
    for inputs, outputs in ((CODE, 256), (256, 128), (128, 64)):
        layers += [nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs, track_running_stats=False), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(64, width), nn.Tanh())


def critic(width: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in ((width, 64), (64, 128)):
        layers += [nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs, track_running_stats=False), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers, nn.Linear(128, 1))


@lru_cache(maxsize=16)
def composed_epsilon(critics: int, noise_multiplier: float, rows: int, steps: int, delta: float) -> float:
    """Of steps in which one critic of many answers for all rows: one draw, and noise of so many answers."""
    one_step = SampledGaussian(1 / critics, noise_multiplier / sqrt(rows), steps)
    return float(pld_epsilon(as_units([one_step]), delta, GRID))


@dataclass(frozen=True, eq=False)
class Wasserstein:
    """One step of a critic with gradient penalty, and its slopes."""

    network: nn.Sequential
    adam: Adam
    stream: Stream

    def learn(self, real: Tensor, fake: Tensor) -> None:
        mixed = self.stream.uniform(len(real), 1)
        between = (mixed * real + (1 - mixed) * fake).requires_grad_()
        (steep,) = torch.autograd.grad(self.network(between).sum(), between, create_graph=True)
        penalty = PENALTY * (steep.norm(dim=1) - 1).square().mean()
        loss = self.network(fake).mean() - self.network(real).mean() + penalty
        set_gradient(self.network, torch.autograd.grad(loss, list(self.network.parameters())))
        self.adam.step()

    def slopes(self, judged: Tensor) -> Tensor:
        """[rows, row width] of -D, each row's clipped."""
        leaf = judged.clone().requires_grad_()
        (found,) = torch.autograd.grad(-self.network(leaf).sum(), leaf)
        found = torch.nan_to_num(found)
        clipped: Tensor = found * (CLIP / found.norm(dim=1, keepdim=True).clamp_min(CLIP))
        return clipped


class PublishedGswgan(Synthesizer):
    def __init__(self, plan: Plan) -> None:
        if plan.partition == "columns":
            raise PlanError("'gswgan' needs whole rows; use 'vertigan' under 'partition: columns'.")
        self.plan = plan
        self.gan: PublishedGan = settings_of(plan, GswganSettings).published
        self.absorbed = self.seed = 0
        self.weights: Arrays = {}
        self.moments: Arrays = {}

    @cached_property
    def paid_steps(self) -> int:
        """As many as the paper's accountant lets the plan's ε pay for."""
        if self.plan.privacy == "none":
            return self.gan.steps
        epsilon, delta, rows = self.plan.privacy.epsilon, self.plan.privacy.delta, self.gan.rows
        most = self.gan.steps * rows
        rate = 1 / self.gan.critics
        return steps_affordable(epsilon, delta, rate, self.gan.noise_multiplier, at_most=most) // rows

    # ── aggregator ──

    def begin(self, statistics: Statistics, seed: int) -> None:
        self.seed = seed
        self.released = Released.of(self.plan, statistics)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.weights = to_arrays(generator(self.released.features.width))

    def ask(self, number: int) -> Ask | None:
        if number >= self.gan.steps:
            return None
        with torch.no_grad():
            taught, judged = (self._network()(codes).numpy() for codes in self._codes(number))
        arrays = {MADE_UP: taught, JUDGED: judged}
        return Ask(self.released.features.to_arrays() | arrays, {"phase": self.phase, "round": number})

    def absorb(self, total: Sum) -> None:
        network = self._network()
        adam = Adam(network.parameters(), LEARNING_RATE, betas=BETAS)
        load_moments(adam, "generator", self.moments)
        made = network(self._codes(self.absorbed)[1])
        slopes = np.asarray(total.arrays.get(SLOPES), dtype=np.float32)
        if slopes.shape != tuple(made.shape) or total.weight <= 0:
            raise ProtocolError("the sum is not what was asked for; the parties run another version")
        if self.absorbed < self.paid_steps:
            push = torch.from_numpy(slopes / np.float32(total.weight * self.gan.rows))
            set_gradient(network, torch.autograd.grad(made, list(network.parameters()), push))
            adam.step()
            self.weights, self.moments = to_arrays(network), moments_to_arrays("generator", adam)
        self.absorbed += 1

    def sample(self, rows: int, seed: int, where: dict[str, str] | None = None) -> Records:
        drawing = Drawing(self._draw, self.released, candidates=1, fitted=False)
        return drawing.sample(rows, seed, codes_of(self.plan.modelled, where or {}))

    def _draw(self, count: int, codes: Codes, stream: Stream) -> tuple[Tensor, Tensor]:
        """Blocks by their largest entry; a label that is fixed is put there by force."""
        rows = self._network()(stream.normal(max(count, 2), CODE))[:count].detach()
        for span in self.released.features.discrete_spans:
            if span.column in codes:
                rows[:, span.slice] = -1.0
                rows[:, span.start + codes[span.column]] = 1.0
        return rows, torch.zeros(count)

    def _network(self) -> nn.Sequential:
        with torch.random.fork_rng(devices=[]):
            network = generator(self.released.features.width)
        load(network, self.weights)
        return network

    def _codes(self, number: int) -> tuple[Tensor, Tensor]:
        """For critics to learn from, and to be judged."""
        stream = Stream.of(seeded_source(self.seed, "published", number))
        return stream.normal(self.gan.rows * self.gan.critic_steps, CODE), stream.normal(self.gan.rows, CODE)

    def state(self) -> Arrays:
        stored = {RELEASED + name: array for name, array in self.released.statistics.to_arrays().items()}
        counters = {"absorbed": np.array(self.absorbed), "seed": np.array(self.seed)}
        return stored | self.weights | self.moments | self.released.features.to_arrays() | counters

    def restore(self, state: Arrays) -> None:
        statistics = {name.removeprefix(RELEASED): a for name, a in state.items() if name.startswith(RELEASED)}
        features = Features.from_arrays(self.plan.modelled, state)
        self.released = Released.of(self.plan, Statistics.from_arrays(self.plan, statistics), features=features)
        self.weights = {name: state[name] for name in to_arrays(generator(features.width))}
        self.moments = {name: array for name, array in state.items() if name.startswith("generator/")}
        self.absorbed, self.seed = int(state["absorbed"]), int(state["seed"])

    # ── party ──

    def cost(self, ask: Ask, party: str) -> list[Event]:
        return self._cost(self._read(ask)[0])

    def planned_costs(self, party: str) -> list[list[Event]]:
        return [self._cost(number) for number in range(self.gan.steps)]

    def _cost(self, number: int) -> list[Event]:
        gan = self.gan
        if self.plan.privacy == "none":
            return [Unaccounted("slopes of critics without noise")]
        if number >= self.paid_steps:
            return []
        real = composed_epsilon(gan.critics, gan.noise_multiplier, gan.rows, self.paid_steps, self.plan.privacy.delta)
        gap = f"one critic for {gan.rows} rows of a step, with a memory: as run ε is {real:.0f} or more"
        return [SampledGaussian(1 / gan.critics, gan.noise_multiplier, gan.rows), Unaccounted(gap)]

    def answer(self, ask: Ask, party: str, data: Rows, local: Arrays, noise: NoiseSource) -> tuple[Answer, Arrays]:
        number, features = self._read(ask)
        share, judged = self.plan.share(party), torch.from_numpy(ask.arrays[JUDGED])
        if self._cost(number) == []:
            return Answer({SLOPES: np.zeros(judged.shape)}, share), local
        local = local if "shards" in local else local | {"shards": noise.child("shards").uint64(4)}
        drawn = int(noise.child("critic").uint64(1)[0] % np.uint64(self.gan.critics))
        rows = self._shard(data.at_hand(), features, local["shards"], drawn)
        made_up = list(torch.split(torch.from_numpy(ask.arrays[MADE_UP]), self.gan.rows))
        slopes, local = self._critic(drawn, rows, made_up, judged, local, Stream.of(noise.child("luck")))
        released = slopes.double().numpy()
        if self.plan.privacy != "none":
            deviation = SENSITIVITY * self.gan.noise_multiplier / LATTICE
            whole = np.rint(released / LATTICE).astype(np.int64).ravel()
            noisy = noise.child("slopes").rounded_gaussian(deviation, whole.size) + whole
            released = np.asarray(noisy, dtype=np.float64).reshape(released.shape) * LATTICE
        return Answer({SLOPES: share * released}, share), local

    def _critic(
        self, drawn: int, rows: Tensor, taught: list[Tensor], judged: Tensor, local: Arrays, stream: Stream
    ) -> tuple[Tensor, Arrays]:
        """The critic that was drawn, warmed up if it is new, learns from made-up rows and answers."""
        prefix, name = f"critic-{drawn}/", f"adam-{drawn}"
        stored = {key.removeprefix(prefix): array for key, array in local.items() if key.startswith(prefix)}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(stream.rng.integers(1 << 62)))
            network = critic(judged.shape[1])
            own = generator(judged.shape[1])
        step = Wasserstein(network, Adam(network.parameters(), LEARNING_RATE, betas=BETAS), stream)
        if stored:
            load(network, stored)
            load_moments(step.adam, name, local)
        elif len(rows):
            self._warm_up(step, own, rows)
        for fake in taught if len(rows) else []:
            step.learn(self._batch(rows, stream), fake)
        kept = {prefix + key: array for key, array in to_arrays(network).items()}
        return step.slopes(judged), local | kept | moments_to_arrays(name, step.adam)

    def _warm_up(self, step: Wasserstein, own: nn.Sequential, rows: Tensor) -> None:
        """Against a generator that has seen this shard only, and is thrown away."""
        adam = Adam(own.parameters(), LEARNING_RATE, betas=BETAS)
        for _ in range(self.gan.warm_start_steps):
            for _ in range(self.gan.critic_steps):
                step.learn(self._batch(rows, step.stream), own(step.stream.normal(self.gan.rows, CODE)).detach())
            loss = -step.network(own(step.stream.normal(self.gan.rows, CODE))).mean()
            set_gradient(own, torch.autograd.grad(loss, list(own.parameters())))
            adam.step()

    def _batch(self, rows: Tensor, stream: Stream) -> Tensor:
        return rows[stream.integers(len(rows), self.gan.rows)]

    def _shard(self, data: Records, features: Features, seed: Array, drawn: int) -> Tensor:
        """One of the disjoint parts of a party's rows, which stay what they are."""
        order = np.random.default_rng(seed).permutation(len(data))
        part = data.take(np.sort(np.array_split(order, self.gan.critics)[drawn]))
        rows = torch.from_numpy(features.encode(part, np.random.default_rng([*seed.tolist(), drawn])))
        for span in features.spans:
            if span.kind != "alpha":
                rows[:, span.slice] = 2 * rows[:, span.slice] - 1
        return rows

    def _read(self, ask: Ask) -> tuple[int, Features]:
        (number,) = whole_numbers(ask, self.phase, "round")
        if number >= self.gan.steps:
            raise ProtocolError(f"the plan has {self.gan.steps} steps; number {number} is none of them")
        features = asked_features(self.plan, None, ask.arrays)
        require_names(ask.arrays, [*features.to_arrays(), MADE_UP, JUDGED])
        for name, rows in ((MADE_UP, self.gan.rows * self.gan.critic_steps), (JUDGED, self.gan.rows)):
            checked(ask.arrays, name, Form((rows, features.width), np.float32))
        return number, features
