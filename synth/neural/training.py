"""What a party does in one round: some steps from the weights it was sent, on Poisson samples of its rows.

All randomness comes from the party's noise source: row sampling and gradient noise directly, the rest through streams
seeded from it, of which none that a real row may advance is used for anything else (see `streams`). Adam's moments
stay with the party between rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from synth.interface import Arrays
from synth.neural.encoded import EncodedRows
from synth.neural.question import Question
from synth.neural.schedule import Schedule
from synth.neural.streams import StepStreams
from synth.neural.weights import load_moments, moments_to_arrays
from synth.privacy.dpsgd import PrivateGradient, poisson_batch
from synth.privacy.noise import NoiseSource
from synth.privacy.supported import PerExampleLoss

Step = Callable[[StepStreams], None]  # changes the networks in place
Gradient = Callable[..., list[Tensor]]  # (loss of each row, *batch) -> the gradient, by parameter


@dataclass(frozen=True, eq=False)
class LocalRound:
    """What one party trains with."""

    schedule: Schedule
    asked: Question
    rows: EncodedRows  # private
    party: str
    noise: NoiseSource

    def batch(self, streams: StepStreams) -> Tensor:
        """The rows that join a step."""
        return joined(self.rows, self.schedule.regime.sample_rate, streams)

    def private_gradient(self, module: nn.Module) -> Gradient:
        """Noisy, divided by the expected batch."""
        return PrivateGradient(module, self.schedule.step_privacy(self.party), self.noise.child("gradient"))

    def plain_gradient(self, module: nn.Module) -> Gradient:
        return PlainGradient(module, self.schedule.expected_batch(self.party))

    def gradient(self, module: nn.Module) -> Gradient:
        """Noisy under privacy and plain without it; both divide by the expected batch, so both learn at one pace."""
        return self.private_gradient(module) if self.schedule.private else self.plain_gradient(module)


@dataclass
class PlainGradient:
    """`PrivateGradient` for data that needs no protection."""

    module: nn.Module
    expected_batch: float

    def __call__(self, per_example_loss: PerExampleLoss, *batch: Tensor) -> list[Tensor]:
        loss = per_example_loss(*batch).sum() / self.expected_batch
        return list(torch.autograd.grad(loss, list(self.module.parameters())))


def joined(rows: EncodedRows, sample_rate: float, streams: StepStreams) -> Tensor:
    """A Poisson sample: every row by its own coin."""
    return rows[torch.as_tensor(poisson_batch(streams.rows, len(rows), sample_rate))]


def hold_near(optimizers: Mapping[str, Adam], proximal: float) -> None:
    """FedProx: every step also pulls each weight back to where it is now. The pull is the gradient of μ/2 |θ - θ₀|²,
    which no row has a part in, and joins after clipping and noise, so no row's gradient is clipped for its sake."""
    for adam in optimizers.values() if proximal else ():
        starts = [parameter.detach().clone() for parameter in adam.param_groups[0]["params"]]

        def pull(optimizer: Optimizer, _args: object, _options: object, starts: list[Tensor] = starts) -> None:
            for parameter, start in zip(optimizer.param_groups[0]["params"], starts, strict=True):
                parameter.grad = parameter.grad + proximal * (parameter.detach() - start)

        adam.register_step_pre_hook(pull)


def train(
    step: Step, optimizers: Mapping[str, Adam], steps: int, local: Arrays, noise: NoiseSource, pace: float = 1.0
) -> Arrays:
    """Take the steps, at a `pace` of each optimizer's learning rate; the party's new local arrays."""
    for name, adam in optimizers.items():
        load_moments(adam, name, local)
        adam.param_groups[0]["lr"] *= pace
    for number in range(1, steps + 1):
        step(StepStreams.of(noise, number))
    stored = local
    for name, adam in optimizers.items():
        stored = stored | moments_to_arrays(name, adam)
    return stored
