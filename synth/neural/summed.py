"""One step a round, of gradients that all parties sum: the same as training on all rows together.

A family writes its step once (`Model.step`), with a gradient of private rows somewhere in it. Where weights are
exchanged, a party carries the whole step out. Here it is cut in two at that gradient: a party carries the step out up
to there and answers with its clipped sum and its share of the noise; the aggregator, which has no rows, carries it
out with the opened sum in that place, and everything after the gradient (momentum, a generator's step) happens there
once. So noise can be shared: nobody sees less than the sum, and the sum has the noise of one party that holds all rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from synth.errors import PrivacyError, ProtocolError
from synth.interface import Array, Sum
from synth.neural.schedule import Schedule
from synth.neural.streams import StepStreams
from synth.neural.training import Gradient, LocalRound, PlainGradient, Step
from synth.privacy.dpsgd import LATTICE, PrivateGradient
from synth.privacy.supported import PerExampleLoss

GRADIENT = "gradient"  # the one array of an answer


class SummandMade(Exception):
    """Leaves a party's step where its summand is known; what follows is the aggregator's."""

    def __init__(self, summand: Array) -> None:
        super().__init__("the summand of a step is made")
        self.summand = summand


@dataclass(frozen=True, eq=False)
class PartyStep(LocalRound):
    """A party's half of a step."""

    def private_gradient(self, module: nn.Module) -> Gradient:
        maker = PrivateGradient(module, self.schedule.step_privacy(self.party), self.noise.child("gradient"))

        def leave(per_example_loss: PerExampleLoss, *batch: Tensor) -> list[Tensor]:
            raise SummandMade(maker.noisy_sum(per_example_loss, *batch))

        return leave

    def plain_gradient(self, module: nn.Module) -> Gradient:
        """This party's part of the mean over everybody's rows."""
        plain = PlainGradient(module, self.schedule.regime.sample_rate * self.schedule.plan.declared_rows)

        def leave(per_example_loss: PerExampleLoss, *batch: Tensor) -> list[Tensor]:
            slopes = plain(per_example_loss, *batch)
            raise SummandMade(np.concatenate([slope.double().cpu().numpy().ravel() for slope in slopes]))

        return leave

    def summand(self, step: Step) -> Array:
        """Whole lattice steps under privacy, real numbers without it."""
        try:
            step(StepStreams.of(self.noise, 1))
        except SummandMade as made:
            return made.summand
        raise PrivacyError("a step came to its end without a gradient of private rows")


@dataclass(frozen=True, eq=False)
class ServerStep(LocalRound):
    """The aggregator's half: no rows, and the opened sum in place of their gradient."""

    opened: Array  # the mean gradient of the rows that joined, noise included; flat

    def private_gradient(self, module: nn.Module) -> Gradient:
        return self.plain_gradient(module)

    def plain_gradient(self, module: nn.Module) -> Gradient:
        parameters = list(module.parameters())
        sizes = [parameter.numel() for parameter in parameters]
        if self.opened.shape != (sum(sizes),):
            raise ProtocolError("the summed gradient does not fit the network; the parties run another version")
        pieces = torch.split(torch.as_tensor(self.opened.astype(np.float32)), sizes)
        slopes = [piece.view_as(parameter) for piece, parameter in zip(pieces, parameters, strict=True)]
        return lambda _loss, *_batch: slopes


def mean_gradient(schedule: Schedule, total: Sum) -> Array:
    """What the parties' summands say together, for the rows that they declared."""
    if set(total.arrays) != {GRADIENT}:
        raise ProtocolError("the sum for a step is not what was asked for; the parties run another version")
    covered = sum(schedule.plan.share(party) for party in total.parties)
    unit = 1.0
    if schedule.private:
        unit = schedule.regime.l2_clip_norm / LATTICE / (schedule.regime.sample_rate * schedule.plan.declared_rows)
    mean: Array = total.arrays[GRADIENT] * (unit / covered)
    return mean
