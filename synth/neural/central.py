"""A generator that only the aggregator has: it asks about rows that it made up, and nobody else ever sees its weights.

    row      a code, one hidden layer, a softmax a block; given the code, every block is drawn by itself
    taught   by the moments of pairs of blocks, M = E (x - p)(x - p)ᵀ with p the released shares: whatever the parties'
             answers say of M, the generator is moved until its own M is the same

The critic that this amounts to is D(x) = (x - p)ᵀ (M - M') (x - p) / 2 with the generator's own M': the best one of all
quadratic forms, in closed form, so there is nothing to train in turns and nothing that oscillates. Given a code the
blocks are independent, so M' is exactly that of the softmaxes: no luck is in the loss. Codes are a fixed table, drawn
once from the run's seed, for the same reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.optim import Adam

from synth.encoding.features import Features, Span
from synth.encoding.records import Records
from synth.interface import Arrays
from synth.neural.central_settings import CentralSettings
from synth.neural.drawing import Codes, Drawing, chance, codes_of, drawn
from synth.neural.model import BETAS
from synth.neural.released import Released
from synth.neural.streams import Stream
from synth.neural.weights import load, set_gradient, to_arrays
from synth.plan import Plan
from synth.privacy.noise import seeded_source
from synth.statistics.histograms import Statistics

RELEASED, GENERATOR = "statistics/", "generator/"
WARM_UP, LAST_PACE = 20, 0.05  # steps until the learning rate is reached; what is left of it at the end
RARE = 1e-4  # products of shares below which a pair of labels counts no more for being rare
SHARE_WEIGHT, RAREST_SHARE = 1.0, 1e-3  # of single columns in the loss

Ints = npt.NDArray[np.int64]


class Generator(nn.Module):
    def __init__(self, features: Features, *, code_width: int, width: int) -> None:
        super().__init__()
        self.spans = features.spans
        self.hidden = nn.Linear(code_width, width)
        self.head = nn.Linear(width, features.width)

    def raw(self, codes: Tensor) -> Tensor:  # [n, code width] -> [n, row width]
        found: Tensor = self.head(torch.relu(self.hidden(codes)))
        return found

    def forward(self, codes: Tensor) -> Tensor:
        """[n, row width]: of every block its probabilities."""
        raw = self.raw(codes)
        return torch.cat([raw[:, span.slice].softmax(1) for span in self.spans], dim=1)


@dataclass(frozen=True, eq=False)
class Lesson:
    """What is wanted of the generator."""

    moments: Tensor  # [row width, row width] of x - p; what is within a block does not count
    pushed: Tensor | None = None  # [codes] numbers of codes whose rows a critic has judged
    slopes: Tensor | None = None  # [codes, row width] of that critic: where less of it is, rows look real


class CentralGenerator:
    """The generator under one plan, what was released before it was made, and its codes."""

    def __init__(self, plan: Plan, settings: CentralSettings) -> None:
        self.plan, self.settings = plan, settings
        self.seed, self.loss = 0, float("nan")

    def begin(self, statistics: Statistics, seed: int) -> None:
        self.seed = seed
        self.released = Released.of(self.plan, statistics, self.settings.bins)
        self.network = self._fresh(seed)
        with torch.no_grad():
            self.network.head.bias.copy_(self.released.biases)

    @property
    def features(self) -> Features:
        return self.released.features

    @cached_property
    def shares(self) -> Tensor:
        """[row width]: the released shares of every block."""
        blocks = [self.released.block_shares[span.start] for span in self.features.spans]
        return torch.cat([block / block.sum() for block in blocks])

    @cached_property
    def codes(self) -> Tensor:
        """[codes, code width]"""
        return self._stream("codes").normal(self.settings.codes, self.settings.code_width)

    def made_up(self, numbers: Tensor, number: int) -> Ints:
        """[rows, blocks]: the labels of rows made from these codes, for ask `number`; the same ones every time."""
        with torch.no_grad():
            rows = drawn(self.network.raw(self.codes[numbers]), self.features.spans, {}, self._stream("rows", number))
        return np.stack([rows[:, span.slice].argmax(1).numpy() for span in self.features.spans], axis=1)

    def code_numbers(self, rows: int, number: int) -> Tensor:
        """Which codes ask `number` is about."""
        return self._stream("numbers", number).integers(len(self.codes), rows)

    def teach(self, lesson: Lesson) -> None:
        """All steps of one lesson, on all codes at once."""
        steps, rate = self.settings.teaching_steps, self.settings.learning_rate
        weights = _weights(self.features.spans, self.shares)
        adam = Adam(self.network.parameters(), rate, betas=BETAS)
        for step in range(steps):
            pace = min(1.0, (step + 1) / WARM_UP) * (1 - (1 - LAST_PACE) * step / steps)
            adam.param_groups[0]["lr"] = rate * pace
            made = self.network(self.codes)
            loss = _distance(made - self.shares, self.shares, weights, lesson.moments)
            self.loss = float(loss.detach())
            if lesson.pushed is not None and lesson.slopes is not None:
                loss = loss + (made[lesson.pushed] * lesson.slopes).sum(1).mean()
            set_gradient(self.network, torch.autograd.grad(loss, list(self.network.parameters())))
            adam.step()

    def draw(self, count: int, codes: Codes, stream: Stream) -> tuple[Tensor, Tensor]:
        raw = self.network.raw(self.codes[stream.integers(len(self.codes), count)])
        spans = self.features.spans
        return drawn(raw, spans, codes, stream), chance(raw, spans, codes)

    def sample(self, rows: int, seed: int, where: dict[str, str]) -> Records:
        drawing = Drawing(self.draw, self.released, self.settings.candidates, fitted=True)
        return drawing.sample(rows, seed, codes_of(self.plan.modelled, where))

    def state(self) -> Arrays:
        stored = {RELEASED + name: array for name, array in self.released.statistics.to_arrays().items()}
        weights = {GENERATOR + name: array for name, array in to_arrays(self.network).items()}
        counters = {"seed": np.array(self.seed), "loss": np.array(self.loss)}
        return stored | weights | self.features.to_arrays() | counters

    def restore(self, state: Arrays) -> None:
        def part(prefix: str) -> Arrays:
            return {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}

        self.seed, self.loss = int(state["seed"]), float(state["loss"])
        features = Features.from_arrays(self.plan.modelled, state)
        statistics = Statistics.from_arrays(self.plan, part(RELEASED))
        self.released = Released.of(self.plan, statistics, features=features)
        self.network = self._fresh(self.seed)
        load(self.network, part(GENERATOR))

    def _fresh(self, seed: int) -> Generator:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return Generator(self.features, code_width=self.settings.code_width, width=self.settings.width)

    def _stream(self, *labels: str | int) -> Stream:
        """Luck of the aggregator, which depends on no row."""
        return Stream.of(seeded_source(self.seed, "central", *labels))


def across_blocks(spans: list[Span], width: int) -> Tensor:
    """[row width, row width]: 1 for entries of two blocks, 0 within one."""
    mask = torch.ones(width, width)
    for span in spans:
        mask[span.slice, span.slice] = 0.0
    return mask


def one_hot(features: Features, labels: Ints) -> Tensor:
    """[rows, row width] of labels [rows, blocks]."""
    rows = torch.zeros(len(labels), features.width)
    for place, span in enumerate(features.spans):
        rows[torch.arange(len(labels)), span.start + torch.from_numpy(labels[:, place])] = 1.0
    return rows


def _weights(spans: list[Span], shares: Tensor) -> Tensor:
    """Of each moment in the loss: the rarer its labels, the more a difference means."""
    return across_blocks(spans, len(shares)) / (torch.outer(shares, shares) + RARE).sqrt()


def _distance(centred: Tensor, shares: Tensor, weights: Tensor, moments: Tensor) -> Tensor:
    """Between the generator's moments and those wanted; `centred` is [codes, row width]."""
    found, mean = centred.T @ centred / len(centred), centred.mean(0)
    pairs = (weights * (found - moments).square()).sum()
    return pairs + SHARE_WEIGHT * (mean.square() / shares.clamp_min(RAREST_SHARE)).sum()
