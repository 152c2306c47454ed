"""The two networks of CTGAN (Xu et al. 2019; Leitner 2023, section 4.3), an essay in torch.

Notable choices:
- the generator's skip connections concatenate, they do not add; BatchNorm is harmless there: it never sees a real row;
- the discriminator has Linear layers only, so that a row's gradient is its own and DP-SGD applies;
- outputs are raw: `activate` makes rows of them for training, `synth.neural.drawing.drawn` for release. A
  Gumbel-softmax of temperature →0 is a draw from the softmax of the raw block, so drawing keeps the law of training.

NOTE[DIFF]: the sigmoid after the discriminator is part of the loss (softplus of the raw output), for precision.
NOTE[DIFF]: Gumbel noise is made from uniforms clamped away from 0 and 1, so the NaNs that CTGAN retries cannot occur.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from synth.encoding.features import Features, Span
from synth.neural.streams import Stream
from synth.synthesizers.ctgan.settings import CtganSettings

TEMPERATURE = 0.2


class Residual(nn.Module):
    def __init__(self, *, inputs: int, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, width)
        self.norm = nn.BatchNorm1d(width)

    def forward(self, x: Tensor) -> Tensor:  # [n, inputs] -> [n, width + inputs]
        return torch.cat([torch.relu(self.norm(self.linear(x))), x], dim=1)


class Generator(nn.Module):
    def __init__(self, *, noise_width: int, condition_width: int, width: int, row_width: int) -> None:
        super().__init__()
        inputs = noise_width + condition_width
        self.noise_width = noise_width
        self.first = Residual(inputs=inputs, width=width)
        self.second = Residual(inputs=inputs + width, width=width)
        self.head = nn.Linear(inputs + 2 * width, row_width)

    def forward(self, conditions: Tensor, stream: Stream) -> Tensor:  # [n, condition_width] -> [n, row_width], raw
        noise = stream.normal(len(conditions), self.noise_width)
        raw: Tensor = self.head(self.second(self.first(torch.cat([noise, conditions], dim=1))))
        return raw


class Discriminator(nn.Module):
    """Raw score per group of `pac` rows: above 0 means real. Units are dropped only where a stream draws which."""

    def __init__(self, *, row_width: int, condition_width: int, width: int, dropout: float, pac: int) -> None:
        super().__init__()
        self.pac = pac
        self.first = nn.Linear(pac * (row_width + condition_width), width)
        self.second = nn.Linear(width, width)
        self.head = nn.Linear(width, 1)
        self.dropout = dropout

    def forward(
        self, rows: Tensor, conditions: Tensor, dropout: Stream | None = None
    ) -> Tensor:  # [n, …], [n, …] -> [n / pac]
        return self.score(self.packed(rows, conditions), dropout)

    def packed(self, rows: Tensor, conditions: Tensor) -> Tensor:
        return torch.cat([rows, conditions], dim=1).reshape(len(rows) // self.pac, self.first.in_features)

    def score(self, packed: Tensor, dropout: Stream | None = None) -> Tensor:
        first, second = self._kept(len(packed), dropout)
        x = F.leaky_relu(self.first(packed), 0.2) * first
        x = F.leaky_relu(self.second(x), 0.2) * second
        score: Tensor = self.head(x)[:, 0]
        return score

    def _kept(self, rows: int, dropout: Stream | None) -> tuple[Tensor, Tensor]:
        """What the units of both hidden layers are multiplied with; both layers' in one draw, row by row."""
        if dropout is None or self.dropout == 0:
            return torch.ones(()), torch.ones(())
        width = self.first.out_features
        kept = (dropout.uniform(rows, 2 * width) >= self.dropout) / (1 - self.dropout)
        return kept[:, :width], kept[:, width:]


class Networks(nn.Module):
    """The pair that is trained."""

    def __init__(self, settings: CtganSettings, features: Features) -> None:
        super().__init__()
        widths = {"condition_width": features.condition_width, "row_width": features.width}
        g, d = settings.generator, settings.discriminator
        self.generator = Generator(noise_width=g.noise_width, width=g.width, **widths)
        self.discriminator = Discriminator(width=d.width, dropout=d.dropout, pac=d.pac, **widths)


def activate(raw: Tensor, spans: Sequence[Span], stream: Stream) -> Tensor:
    """Rows that gradients can flow through: tanh for each α, Gumbel-softmax for each one-hot block."""
    noisy = (raw + stream.gumbel(*raw.shape)) / TEMPERATURE
    return torch.cat(
        [torch.tanh(raw[:, s.slice]) if s.kind == "alpha" else noisy[:, s.slice].softmax(1) for s in spans], dim=1
    )
