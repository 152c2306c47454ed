"""FinDiff as published (Sattarov et al. 2023, 2024): a DDPM over embedded labels and normal scores, for benchmarks.

    loss    mean over the d numbers of |ε - ε̂(√ᾱₜ x₀ + √(1 - ᾱₜ) ε, t, class)|², one t and one ε a row
    draw    N(0, I) through T reverse steps; labels by the nearest embedding of their column, numbers by their rank

The table of embeddings is frozen and drawn from a public seed, so it is no part of what is trained. Classes of the
target are a condition, drawn from the released histogram.

NOTE[DIFF]: scikit-learn's quantile transform keeps a thousand order statistics of exact rows. Here a number's rank is
that of the column's mixture, which the parties averaged; a missing number is taken for the median.
NOTE[DIFF]: the class's embedding is a Linear layer on its one-hot block, the same thing with a gradient a row.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import Adam

from synth.encoding.features import Features, Span
from synth.neural.drawing import Codes, drawn
from synth.neural.model import RowLossModel, settings_of
from synth.neural.released import Released
from synth.neural.streams import Stream
from synth.plan import Plan
from synth.synthesizers.findiff.ranks import from_scores, scores
from synth.synthesizers.findiff.settings import FindiffSettings

EMBEDDING_WIDTH, EMBEDDING_SEED = 2, 0
COMMON_WIDTH = 64  # of time, class and row where they meet
SLOPE = 0.4  # of LeakyReLU
BETAS = (1e-4, 0.02)  # for a thousand steps; FinDiff scales both ends by 1000 / T


@dataclass(frozen=True)
class Steps:
    """The public schedule: how much of a row is left after each step."""

    count: int

    @cached_property
    def betas(self) -> Tensor:
        scale = 1000 / self.count
        return torch.linspace(scale * BETAS[0], scale * BETAS[1], self.count).clamp(max=0.999)

    @cached_property
    def kept(self) -> Tensor:
        """ᾱ."""
        return (1 - self.betas).double().cumprod(0).float()


class Embedding:
    """Encoded rows as points and back; public, and nothing of it is learned."""

    def __init__(self, features: Features, target: str | None) -> None:
        self.features, spans = features, features.spans
        self.labels = [span for span in spans if span.kind == "label" and span.column != target]
        self.classes = next((span for span in spans if span.column == target and span.kind == "label"), None)
        self.numbers = [span for span in spans if span.kind == "alpha"]
        generator = torch.Generator().manual_seed(EMBEDDING_SEED)
        self.tables = [torch.randn(span.width, EMBEDDING_WIDTH, generator=generator) for span in self.labels]

    @property
    def width(self) -> int:
        return EMBEDDING_WIDTH * len(self.labels) + len(self.numbers)

    def points(self, rows: Tensor) -> Tensor:  # [n, row width] -> [n, width]
        tables = [table.to(rows.device) for table in self.tables]
        labels = [rows[:, span.slice] @ table for span, table in zip(self.labels, tables, strict=True)]
        numbers = [scores(rows, span, self.features.mixtures[span.column]) for span in self.numbers]
        return torch.cat([*labels, *numbers], dim=1)

    def rows(self, points: Tensor, classes: Tensor) -> Tensor:
        """The rows nearest to the points."""
        rows = torch.zeros(len(points), self.features.width)
        for place, (span, table) in enumerate(zip(self.labels, self.tables, strict=True)):
            here = points[:, EMBEDDING_WIDTH * place : EMBEDDING_WIDTH * (place + 1)]
            rows[torch.arange(len(points)), span.start + torch.cdist(here, table.to(here.device)).argmin(1)] = 1.0
        first = EMBEDDING_WIDTH * len(self.labels)
        for place, span in enumerate(self.numbers):
            from_scores(rows, points[:, first + place], span, self.features.mixtures[span.column])
        if self.classes is not None:
            rows[:, self.classes.slice] = classes
        return rows


class Denoiser(nn.Module):
    def __init__(self, settings: FindiffSettings, features: Features, target: str | None) -> None:
        super().__init__()
        self.embedding, self.steps = Embedding(features, target), Steps(settings.diffusion_steps)
        classes = self.embedding.classes
        self.time = _two_layers(COMMON_WIDTH)
        self.row = _two_layers(self.embedding.width)
        self.label = nn.Linear(classes.width, COMMON_WIDTH, bias=False) if classes else None
        widths = [COMMON_WIDTH, *[settings.width] * settings.depth]
        self.body = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(widths))
        self.head = nn.Linear(settings.width, self.embedding.width)

    def forward(self, points: Tensor, time: Tensor, classes: Tensor) -> Tensor:  # [n, d], [n], [n, k] -> [n, d]
        x = self.row(points) + self.time(_waves(time))
        if self.label is not None:
            x = x + self.label(classes)
        for layer in self.body:
            x = F.leaky_relu(layer(x), SLOPE)
        guess: Tensor = self.head(x)
        return guess


class GaussianDiffusion(RowLossModel[Denoiser]):
    fitted = False

    def __init__(self, plan: Plan) -> None:
        self.settings = settings_of(plan, FindiffSettings)
        super().__init__(plan, self.settings.regime())
        self.learning_rate, self.candidates = self.settings.learning_rate, self.settings.candidates

    def network(self, features: Features) -> Denoiser:
        return Denoiser(self.settings, features, self.plan.modelled.target)

    def optimizers(self, network: Denoiser) -> Mapping[str, Adam]:
        return {"network": Adam(network.parameters(), self.learning_rate)}

    def losses(self, network: Denoiser, rows: Tensor, stream: Stream) -> Tensor:
        points = network.embedding.points(rows)
        time = (stream.uniform(len(rows), 1)[:, 0] * network.steps.count).long().clamp(max=network.steps.count - 1)
        noise, kept = stream.normal(*points.shape), network.steps.kept[time][:, None]
        guess = network(kept.sqrt() * points + (1 - kept).sqrt() * noise, time, classes_of(network, rows))
        loss: Tensor = (noise - guess).square().mean(1)
        return loss

    def draw(
        self, network: Denoiser, released: Released, count: int, codes: Codes, stream: Stream
    ) -> tuple[Tensor, Tensor]:
        classes, steps = self._classes(network, released, count, codes, stream), network.steps
        points = stream.normal(count, network.embedding.width)
        for step in reversed(range(steps.count)):
            beta, kept = steps.betas[step], steps.kept[step]
            guess = network(points, torch.full((count,), step), classes)
            points = (points - beta / (1 - kept).sqrt() * guess) / (1 - beta).sqrt()
            if step:
                points = points + beta.sqrt() * stream.normal(*points.shape)
        rows = network.embedding.rows(points, classes)
        fixed = [span for span in network.embedding.labels if span.column in codes]
        for span in fixed:
            rows[:, span.slice] = _one_hot(torch.full((count,), codes[span.column]), span)
        return rows, torch.zeros(count)

    def _classes(self, network: Denoiser, released: Released, count: int, codes: Codes, stream: Stream) -> Tensor:
        """[count, classes], one-hot, by the released histogram unless they are fixed."""
        span = network.embedding.classes
        if span is None:
            return torch.zeros(count, 0)
        raw = released.block_shares[span.start].log().repeat(count, 1)
        alone = Span(span.column, "label", 0, span.width)
        return drawn(raw, [alone], codes, stream)


def classes_of(network: Denoiser, rows: Tensor) -> Tensor:
    span = network.embedding.classes
    return rows[:, :0] if span is None else rows[:, span.slice]


def _one_hot(labels: Tensor, span: Span) -> Tensor:
    return F.one_hot(labels, span.width).float()


def _two_layers(inputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, COMMON_WIDTH), nn.SiLU(), nn.Linear(COMMON_WIDTH, COMMON_WIDTH))


def _waves(time: Tensor) -> Tensor:  # [n] -> [n, COMMON_WIDTH]
    half = COMMON_WIDTH // 2
    rates = torch.exp(-math.log(10_000) * torch.arange(half) / half)
    angles = time[:, None] * rates
    return torch.cat([angles.cos(), angles.sin()], dim=1)
