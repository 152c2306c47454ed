"""One discriminator step and one generator step.

The discriminator's gradient has two halves. The real half touches private rows: clipped row by row, noised, divided by
a public number. The fake half depends on no private row and is added after the noise; its rows are clipped to the same
norm, or a few badly made rows would drown the bounded half. Everything the generator learns passes through the
discriminator's released weights, so its step needs no noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional as F

from synth.encoding.features import Span
from synth.neural.streams import StepStreams, Stream
from synth.neural.training import Gradient
from synth.privacy.dpsgd import ClippedSum
from synth.synthesizers.ctgan.conditions import Conditions
from synth.synthesizers.ctgan.networks import Discriminator, Generator, Networks, activate
from synth.synthesizers.ctgan.settings import CtganSettings

GRADIENT_PENALTY = 10.0
Pairs = tuple[Tensor, Tensor]  # rows [n, row width] and their conditions [n, condition width]
DiscriminatorStep = Callable[[Pairs, Pairs, StepStreams], list[Tensor]]  # (real, fake, luck) -> gradient, by parameter


@dataclass
class PrivateStep:
    """Cross-entropy with a noisy real half."""

    discriminator: Discriminator
    private_gradient: Gradient
    l2_clip_norm: float
    clipped: ClippedSum = field(init=False)  # of made-up rows

    def __post_init__(self) -> None:
        self.clipped = ClippedSum(self.discriminator, self.l2_clip_norm)

    def __call__(self, real: Pairs, fake: Pairs, streams: StepStreams) -> list[Tensor]:
        noisy = self.private_gradient(
            lambda rows, conditions: F.softplus(-self.discriminator(rows, conditions, streams.dropout)), *real
        )
        return [a + b for a, b in zip(noisy, self.fake_half(fake, streams.made_up), strict=True)]

    def fake_half(self, fake: Pairs, dropout: Stream) -> list[Tensor]:
        """Mean over made-up rows of the loss's gradient, each row's clipped. No noise: nothing here is private."""
        total = self.clipped(lambda *rows: F.softplus(self.discriminator(*rows, dropout)), *fake)
        return self.clipped.by_parameter((total * (self.clipped.l2_clip_norm / len(fake[0]))).float())


@dataclass
class PlainStep:
    """Cross-entropy without noise; `expected_batch` as in the private step, so both learn at the same pace."""

    discriminator: Discriminator
    expected_batch: float

    def __call__(self, real: Pairs, fake: Pairs, streams: StepStreams) -> list[Tensor]:
        critic = self.discriminator
        loss = F.softplus(critic(*fake, streams.made_up)).mean()
        loss = loss + F.softplus(-critic(*real, streams.dropout)).sum() * critic.pac / self.expected_batch
        return list(torch.autograd.grad(loss, list(self.discriminator.parameters())))


@dataclass
class WassersteinStep:
    """CTGAN's critic with gradient penalty, for data that needs no protection. Without real rows it learns nothing."""

    discriminator: Discriminator

    def __call__(self, real: Pairs, fake: Pairs, streams: StepStreams) -> list[Tensor]:
        critic, count = self.discriminator, min(len(real[0]), len(fake[0]))
        count -= count % critic.pac
        if count == 0:
            return [torch.zeros_like(parameter) for parameter in critic.parameters()]
        dropout = streams.dropout
        ours, theirs = (critic.packed(rows[:count], conditions[:count]) for rows, conditions in (real, fake))
        share = dropout.uniform(len(ours), 1)
        between = (share * ours + (1 - share) * theirs).requires_grad_()
        (slope,) = torch.autograd.grad(critic.score(between, dropout).sum(), between, create_graph=True)
        penalty = GRADIENT_PENALTY * (slope.norm(dim=1) - 1).square().mean()
        loss = critic.score(theirs, dropout).mean() - critic.score(ours, dropout).mean() + penalty
        return list(torch.autograd.grad(loss, list(critic.parameters())))


def made_up(generator: Generator, conditions: Tensor, spans: Sequence[Span], stream: Stream) -> Pairs:
    """Rows to show to the discriminator; no gradient flows into the generator."""
    with torch.no_grad():
        return activate(generator(conditions, stream), spans, stream), conditions


def generator_loss(
    networks: Networks, conditions: Conditions, spans: Sequence[Span], settings: CtganSettings, stream: Stream
) -> Tensor:
    """How badly fresh rows pass for real ones, and how little they listen to their conditions."""
    asked = conditions.draw(settings.discriminator.fake_batch, stream)
    raw = networks.generator(asked, stream)
    score = networks.discriminator(activate(raw, spans, stream), asked, stream)
    wasserstein = settings.discriminator.loss == "wasserstein"
    loss = -score.mean() if wasserstein else F.softplus(-score).mean()
    if settings.generator.condition_weight:
        loss = loss + settings.generator.condition_weight * conditions.penalty(raw, asked)
    return loss
