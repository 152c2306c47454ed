"""VertiGAN as published, with its gaps: `profile: faithful`, under `partition: columns` only.

ask     the whole generator, trunk and all branches, and a seed                              (aggregator)
answer  E private steps of the party's critic on rows and codes that everybody knows by the  (party)
        seed, then the gradient of the generator by its judgement
absorb  one step of RMSprop on the sum of the gradients

The seed tells the aggregator and every party which rows are in a batch, so sampling hides nobody from them, and noise
is for one party's part of a person who is at all of them: ε is nominal. The losses judge each party's columns alone, so
nothing here says how columns of two parties go together. Widths that the paper leaves out are the specification's.

NOTE[DIFF]: numbers are in bins of the released histogram; the paper bins them beforehand, by exact rows. Noise comes
from a private stream and not from the seed, without which there would be none.
"""

from __future__ import annotations

from functools import cached_property
from math import ceil

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.optim import RMSprop

from synth.encoding.features import Features, Span
from synth.encoding.records import Records
from synth.encoding.rows import Rows
from synth.errors import PlanError, ProtocolError
from synth.interface import Answer, Array, Arrays, Ask, Sum, Synthesizer
from synth.messages.asked import Form, checked, require_names, whole_numbers
from synth.neural.drawing import Codes, Drawing, chance, codes_of, drawn
from synth.neural.model import settings_of
from synth.neural.question import asked_features
from synth.neural.released import Released
from synth.neural.streams import Stream
from synth.neural.weights import forms, load, require_in_range, set_gradient, to_arrays
from synth.plan import Plan
from synth.privacy.calibration import calibrate_noise_multiplier
from synth.privacy.events import Event, SampledGaussian, Unaccounted
from synth.privacy.noise import NoiseSource, seeded_source
from synth.statistics.histograms import Statistics
from synth.synthesizers.vertigan.settings import PublishedVertiganSettings, VertiganSettings

CODE, PENALTY, CLIP, LEARNING_RATE = 32, 10.0, 1.0, 1e-3
SEED, GRADIENT, RELEASED = "seed", "gradient", "statistics/"
SQUARES, CRITIC = "squares/", "critic/"
LATTICE = 2.0**-20  # noise is whole multiples of it
GAP = "rows sampled by a seed that everybody knows; noise for one party's part of a person who is at all of them"


class MultiOutput(nn.Module):
    """A trunk for everybody and a branch a party."""

    def __init__(self, parts: list[list[Span]]) -> None:
        super().__init__()
        widths = [sum(span.width for span in part) for part in parts]
        quarter, half = ceil(sum(widths) / 4), ceil(sum(widths) / 2)
        self.trunk = nn.Sequential(nn.Linear(CODE, quarter), nn.ReLU(), nn.Linear(quarter, half), nn.ReLU())
        self.branches = nn.ModuleList(
            [nn.Sequential(nn.Linear(half, ceil(w / 2)), nn.ReLU(), nn.Linear(ceil(w / 2), w)) for w in widths]
        )

    def raw(self, codes: Tensor, place: int) -> Tensor:
        found: Tensor = self.branches[place](self.trunk(codes))
        return found


def critic(width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, ceil(width / 2)), nn.ReLU(), nn.Linear(ceil(width / 2), 1), nn.Sigmoid())


def blocks(raw: Tensor, part: list[Span]) -> Tensor:
    """Softmax, block by block of one party."""
    pieces = torch.split(raw, [span.width for span in part], dim=1)
    return torch.cat([piece.softmax(1) for piece in pieces], dim=1)


def pair_gradients(network: nn.Module, real: Tensor, fake: Tensor, mixed: Tensor) -> list[Tensor]:
    """By parameter, [pairs, …]: of D(x) - D(x̃) + λ (|∇D(x̂)| - 1)² for every pair, the penalty included."""
    weights = {name: parameter.detach() for name, parameter in network.named_parameters()}

    def score(held: dict[str, Tensor], row: Tensor) -> Tensor:
        found: Tensor = functional_call(network, held, (row[None],))[0, 0]
        return found

    def loss(held: dict[str, Tensor], x: Tensor, y: Tensor, mu: Tensor) -> Tensor:
        steep = grad(score, argnums=1)(held, mu * x + (1 - mu) * y)
        norm: Tensor = (steep.square().sum() + 1e-12).sqrt()
        return score(held, x) - score(held, y) + PENALTY * (norm - 1).square()

    found = vmap(grad(loss), in_dims=(None, 0, 0, 0))(weights, real, fake, mixed)
    return [found[name] for name in weights]


class PublishedVertigan(Synthesizer):
    def __init__(self, plan: Plan) -> None:
        if plan.partition != "columns":
            raise PlanError("'vertigan' was published for 'partition: columns'; say so, or use profile 'rigorous'.")
        settings = settings_of(plan, VertiganSettings)
        self.plan, self.bins = plan, settings.bins
        self.gan: PublishedVertiganSettings = settings.published
        self.absorbed = self.seed = 0
        self.weights: Arrays = {}
        self.squares: Arrays = {}

    @property
    def rate(self) -> float:
        return min(1.0, self.gan.batch / self.plan.declared_rows)

    @cached_property
    def noise_multiplier(self) -> float | None:
        """As the paper finds it: for one party's steps alone, and nothing beside them."""
        if self.plan.privacy == "none":
            return None
        steps = self.gan.rounds * self.gan.critic_steps
        return calibrate_noise_multiplier(self.plan.privacy.epsilon, self.plan.privacy.delta, self.rate, steps)

    # ── aggregator ──

    def begin(self, statistics: Statistics, seed: int) -> None:
        self.seed = seed
        self.released = Released.of(self.plan, statistics, self.bins)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.weights = to_arrays(MultiOutput(self._parts(self.released.features)))

    def ask(self, number: int) -> Ask | None:
        if number >= self.gan.rounds:
            return None
        seed = seeded_source(self.seed, "published", number).uint64(4).copy()
        arrays = self.weights | self.released.features.to_arrays() | {SEED: seed}
        return Ask(arrays, {"phase": self.phase, "round": number})

    def absorb(self, total: Sum) -> None:
        network = self._network(self.released.features, self.weights)
        flat = np.asarray(total.arrays.get(GRADIENT), dtype=np.float32)
        sizes = [parameter.numel() for parameter in network.parameters()]
        if flat.shape != (sum(sizes),):
            raise ProtocolError("the sum is not what was asked for; the parties run another version")
        pieces = torch.split(torch.from_numpy(flat), sizes)
        slopes = [piece.view_as(p) for piece, p in zip(pieces, network.parameters(), strict=True)]
        self.squares = _rmsprop(network, slopes, self.squares)
        self.weights = to_arrays(network)
        self.absorbed += 1

    def sample(self, rows: int, seed: int, where: dict[str, str] | None = None) -> Records:
        drawing = Drawing(self._draw, self.released, candidates=1, fitted=False)
        return drawing.sample(rows, seed, codes_of(self.plan.modelled, where or {}))

    def _draw(self, count: int, codes: Codes, stream: Stream) -> tuple[Tensor, Tensor]:
        network, parts = self._network(self.released.features, self.weights), self._parts(self.released.features)
        z, raw = stream.normal(count, CODE), torch.zeros(count, self.released.features.width)
        for place, part in enumerate(parts):
            pieces = torch.split(network.raw(z, place).detach(), [span.width for span in part], dim=1)
            for span, piece in zip(part, pieces, strict=True):
                raw[:, span.slice] = piece
        spans = self.released.features.spans
        return drawn(raw, spans, codes, stream, likeliest=True), chance(raw, spans, codes)

    def state(self) -> Arrays:
        stored = {RELEASED + name: array for name, array in self.released.statistics.to_arrays().items()}
        counters = {"absorbed": np.array(self.absorbed), "luck": np.array(self.seed)}
        return stored | self.weights | self.squares | self.released.features.to_arrays() | counters

    def restore(self, state: Arrays) -> None:
        statistics = {name.removeprefix(RELEASED): a for name, a in state.items() if name.startswith(RELEASED)}
        features = Features.from_arrays(self.plan.modelled, state)
        self.released = Released.of(self.plan, Statistics.from_arrays(self.plan, statistics), features=features)
        self.weights = {name: state[name] for name in forms(MultiOutput(self._parts(features)))}
        self.squares = {name: array for name, array in state.items() if name.startswith(SQUARES)}
        self.absorbed, self.seed = int(state["absorbed"]), int(state["luck"])

    # ── party ──

    def cost(self, ask: Ask, party: str) -> list[Event]:
        return self.planned_costs(party)[self._read(ask)[0]]

    def planned_costs(self, party: str) -> list[list[Event]]:
        events: list[Event] = [Unaccounted("gradients without noise")]
        if self.noise_multiplier is not None:
            steps = SampledGaussian(self.rate, self.noise_multiplier, self.gan.critic_steps)
            events = [steps, Unaccounted(GAP)]
        return [events for _ in range(self.gan.rounds)]

    def answer(self, ask: Ask, party: str, data: Rows, local: Arrays, noise: NoiseSource) -> tuple[Answer, Arrays]:
        _, features = self._read(ask)
        network, weight = self._network(features, ask.arrays), self.plan.share(party)
        if party not in self.plan.holders:
            nothing = np.zeros(sum(p.numel() for p in network.parameters()))
            return Answer({GRADIENT: nothing}, weight), local
        place = self.plan.holders.index(party)
        part = self._parts(features)[place]
        encoded = torch.from_numpy(features.encode(data.at_hand(), np.random.default_rng(0)))
        rows = torch.cat([encoded[:, span.slice] for span in part], dim=1)
        judge = critic(rows.shape[1])
        squares = _taken_up(judge, local, noise)
        known = Stream(int.from_bytes(ask.arrays[SEED].tobytes()))  # everybody's: rows, codes and how pairs are mixed
        for step in range(self.gan.critic_steps):
            chosen = (
                known.integers(max(len(rows), 1), self.gan.batch) if len(rows) else torch.zeros(0, dtype=torch.long)
            )
            fake = blocks(network.raw(known.normal(self.gan.batch, CODE), place), part).detach()[: len(chosen)]
            mixed = known.uniform(self.gan.batch, 1)[: len(chosen), 0]
            slopes = self._noisy(pair_gradients(judge, rows[chosen], fake, mixed), noise.child("gradient", step))
            squares = _rmsprop(judge, slopes, squares)
        score = judge(blocks(network.raw(known.normal(self.gan.batch, CODE), place), part)).mean()
        found = torch.autograd.grad(score, list(network.parameters()), allow_unused=True, materialize_grads=True)
        kept = {CRITIC + name: array for name, array in to_arrays(judge).items()} | squares
        return Answer({GRADIENT: np.concatenate([g.double().numpy().ravel() for g in found])}, weight), local | kept

    def _noisy(self, gradients: list[Tensor], noise: NoiseSource) -> list[Tensor]:
        """(Σ of clipped gradients of pairs + noise) / batch."""
        flat = torch.cat([g.reshape(len(g), -1) for g in gradients], dim=1).double()
        total = (flat * (CLIP / flat.norm(dim=1, keepdim=True).clamp_min(CLIP))).sum(0).numpy()
        if self.noise_multiplier is not None:
            whole = np.rint(total / LATTICE).astype(np.int64)
            noisy = noise.rounded_gaussian(self.noise_multiplier * CLIP / LATTICE, len(whole)) + whole
            total = np.asarray(noisy, dtype=np.float64) * LATTICE
        pieces = torch.split(torch.from_numpy(total / self.gan.batch).float(), [g[0].numel() for g in gradients])
        return [piece.view(g.shape[1:]) for piece, g in zip(pieces, gradients, strict=True)]

    # ── both ──

    def _parts(self, features: Features) -> list[list[Span]]:
        held = [set(self.plan.columns_of(party)) for party in self.plan.holders]
        return [[span for span in features.spans if span.column in columns] for columns in held]

    def _network(self, features: Features, arrays: Arrays) -> MultiOutput:
        with torch.random.fork_rng(devices=[]):
            network = MultiOutput(self._parts(features))
        load(network, arrays)
        return network

    def _read(self, ask: Ask) -> tuple[int, Features]:
        (number,) = whole_numbers(ask, self.phase, "round")
        if number >= self.gan.rounds:
            raise ProtocolError(f"the plan has {self.gan.rounds} rounds; number {number} is none of them")
        features = asked_features(self.plan, self.bins, ask.arrays)
        with torch.device("meta"):
            expected = forms(MultiOutput(self._parts(features)))
        require_names(ask.arrays, [*features.to_arrays(), *expected, SEED])
        require_in_range(ask.arrays, expected)
        checked(ask.arrays, SEED, Form((4,), np.uint64))
        return number, features


def _taken_up(judge: nn.Sequential, local: Arrays, noise: NoiseSource) -> Arrays:
    """The critic of the round before, or a fresh one by the party's own luck."""
    stored = {name.removeprefix(CRITIC): array for name, array in local.items() if name.startswith(CRITIC)}
    if stored:
        load(judge, stored)
        return {name: array for name, array in local.items() if name.startswith(SQUARES)}
    stream = Stream.of(noise.child("critic"))
    with torch.no_grad():
        for parameter in judge.parameters():
            bound = parameter.shape[-1] ** -0.5
            parameter.copy_((2 * stream.uniform(parameter.numel(), 1).view_as(parameter) - 1) * bound)
    return {}


def _rmsprop(network: nn.Module, slopes: list[Tensor], squares: Arrays) -> Arrays:
    """One step; the new running squares."""
    rule = RMSprop(network.parameters(), LEARNING_RATE)
    names = [SQUARES + name for name in to_arrays(network)]
    if squares:
        state: dict[int, dict[str, Array | Tensor]] = {
            place: {"step": torch.tensor(1.0), "square_avg": torch.from_numpy(squares[name].copy())}
            for place, name in enumerate(names)
        }
        rule.load_state_dict({"state": state, "param_groups": rule.state_dict()["param_groups"]})
    set_gradient(network, slopes)
    rule.step()
    found = rule.state_dict()["state"]
    return {name: found[place]["square_avg"].numpy().copy() for place, name in enumerate(names)}
