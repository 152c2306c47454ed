"""Training on rows that are nobody's: drawn from what was released already, so that looking at them costs nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from synth.neural.model import Model
from synth.neural.question import Question
from synth.neural.released import Released
from synth.neural.streams import StepStreams
from synth.neural.training import Gradient, LocalRound, PlainGradient
from synth.privacy.noise import NoiseSource

BATCH = 1000  # rows a step


@dataclass(frozen=True, eq=False)
class FreeRound(LocalRound):
    """Steps whose rows need no protection."""

    def batch(self, streams: StepStreams) -> Tensor:
        return self.rows[streams.made_up.integers(len(self.rows), BATCH)]

    def private_gradient(self, module: nn.Module) -> Gradient:
        return self.plain_gradient(module)

    def plain_gradient(self, module: nn.Module) -> Gradient:
        return PlainGradient(module, BATCH)


def learn(
    model: Model[Any], network: nn.Module, released: Released, rows: Tensor, steps: int, luck: NoiseSource
) -> None:
    """The steps that a model takes, as often as asked, at a rate that falls; changes the network in place."""
    asked = Question(released.features, released.frequencies, 1.0)
    optimizers = model.optimizers(network)
    step = model.step(network, FreeRound(model.schedule, asked, rows, "", luck), optimizers)
    rates = {name: adam.param_groups[0]["lr"] for name, adam in optimizers.items()}
    for number in range(steps):
        for name, adam in optimizers.items():
            adam.param_groups[0]["lr"] = rates[name] * model.schedule.falling(number, steps)
        step(StepStreams.of(luck, number))
