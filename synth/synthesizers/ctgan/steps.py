"""One discriminator step and one generator step.

The discriminator's gradient has two halves. The real half touches private rows: clipped row by row, noised, divided by
a public number. The fake half depends on no private row and is added after the noise; its rows are clipped to the same
norm, or a few badly made rows would drown the bounded half. Everything the generator learns passes through the
discriminator's released weights, so its step needs no noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from synth.encoding.features import Span
from synth.privacy.dpsgd import PrivateGradient
from synth.synthesizers.ctgan.conditions import Conditions
from synth.synthesizers.ctgan.networks import Discriminator, Generator, activate
from synth.synthesizers.ctgan.settings import CtganSettings
from synth.synthesizers.ctgan.weights import Networks

GRADIENT_PENALTY = 10.0
Pairs = tuple[Tensor, Tensor]  # rows [n, row width] and their conditions [n, condition width]
DiscriminatorStep = Callable[
    [Pairs, Pairs], list[Tensor]
]  # (real, fake) -> gradient of the discriminator, by parameter


@dataclass
class PrivateStep:
    """Cross-entropy with a noisy real half."""

    discriminator: Discriminator
    private_gradient: PrivateGradient

    def __call__(self, real: Pairs, fake: Pairs) -> list[Tensor]:
        noisy = self.private_gradient(lambda rows, conditions: F.softplus(-self.discriminator(rows, conditions)), *real)
        clip = self.private_gradient.privacy.l2_clip_norm
        return [a + b for a, b in zip(noisy, clipped_mean(self.discriminator, fake, clip), strict=True)]


@dataclass
class PlainStep:
    """Cross-entropy without noise; `expected_batch` as in the private step, so both learn at the same pace."""

    discriminator: Discriminator
    expected_batch: float

    def __call__(self, real: Pairs, fake: Pairs) -> list[Tensor]:
        loss = F.softplus(self.discriminator(*fake)).mean()
        loss = loss + F.softplus(-self.discriminator(*real)).sum() * self.discriminator.pac / self.expected_batch
        return list(torch.autograd.grad(loss, list(self.discriminator.parameters())))


@dataclass
class WassersteinStep:
    """CTGAN's critic with gradient penalty, for data that needs no protection."""

    discriminator: Discriminator

    def __call__(self, real: Pairs, fake: Pairs) -> list[Tensor]:
        critic, count = self.discriminator, min(len(real[0]), len(fake[0]))
        count -= count % critic.pac
        ours, theirs = (critic.packed(rows[:count], conditions[:count]) for rows, conditions in (real, fake))
        share = torch.rand(len(ours), 1)
        between = (share * ours + (1 - share) * theirs).requires_grad_()
        (slope,) = torch.autograd.grad(critic.score(between).sum(), between, create_graph=True)
        penalty = GRADIENT_PENALTY * (slope.norm(dim=1) - 1).square().mean()
        loss = critic.score(theirs).mean() - critic.score(ours).mean() + penalty
        return list(torch.autograd.grad(loss, list(critic.parameters())))


def clipped_mean(discriminator: Discriminator, fake: Pairs, l2_clip_norm: float) -> list[Tensor]:
    """Mean over made-up rows of the loss's gradient, each row's clipped. No noise: nothing here is private.

    As in synth.privacy.dpsgd, the norm of a row's gradient is found from layer inputs and output slopes; the weighted
    sum of losses then has the sum of clipped gradients as its gradient.
    """
    layers = [discriminator.first, discriminator.second, discriminator.head]
    inputs: list[Tensor] = []
    outputs: list[Tensor] = []

    def keep(_: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
        inputs.append(args[0].detach())
        outputs.append(output)

    handles = [layer.register_forward_hook(keep) for layer in layers]
    losses = F.softplus(discriminator(*fake))
    for handle in handles:
        handle.remove()
    slopes = torch.autograd.grad(losses.sum(), outputs)
    squared = sum(g.square().sum(1) * (a.square().sum(1) + 1) for a, g in zip(inputs, slopes, strict=True))
    factors = (l2_clip_norm / (torch.as_tensor(squared).sqrt() + 1e-6)).clamp(max=1.0) / len(losses)
    gradients: list[Tensor] = []
    for a, g in zip(inputs, slopes, strict=True):
        clipped = g * factors[:, None]
        gradients += [clipped.T @ a, clipped.sum(0)]
    return gradients


def made_up(generator: Generator, conditions: Tensor, spans: Sequence[Span]) -> Pairs:
    """Rows to show to the discriminator; no gradient flows into the generator."""
    with torch.no_grad():
        return activate(generator(conditions), spans), conditions


def generator_loss(
    networks: Networks, conditions: Conditions, spans: Sequence[Span], settings: CtganSettings
) -> Tensor:
    """How badly fresh rows pass for real ones, and how little they listen to their conditions."""
    asked = conditions.draw(settings.discriminator.fake_batch)
    raw = networks.generator(asked)
    score = networks.discriminator(activate(raw, spans), asked)
    wasserstein = settings.discriminator.loss == "wasserstein"
    loss = -score.mean() if wasserstein else F.softplus(-score).mean()
    if settings.generator.condition_weight:
        loss = loss + settings.generator.condition_weight * conditions.penalty(raw, asked)
    return loss


def set_gradient(module: nn.Module, gradient: Sequence[Tensor]) -> None:
    """Hand the optimizer a gradient, by parameter."""
    for parameter, slope in zip(module.parameters(), gradient, strict=True):
        parameter.grad = slope
