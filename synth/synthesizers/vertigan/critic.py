"""A party's critic of its own columns: trained by DP-SGD on its own Poisson samples, kept from ask to ask, never sent.
What leaves is how it would like made-up rows to change, a function of private weights.

NOTE[DIFF]: VertiGAN's parties share the seed by which rows are sampled, so everybody knows who is in a batch and
sampling hides nobody; here every party tosses its own coins. Its critics end in a sigmoid and are kept smooth by a
gradient penalty, for which no engine finds gradients of single rows; here the output is linear and weights are clamped,
as in the first WGAN. Its gradients of the generator are unbounded; here slopes are clipped, row by row, which costs
nothing: they are post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Adam

from synth.encoding.features import Features
from synth.encoding.records import Records
from synth.interface import Array, Arrays
from synth.neural.central import Ints, one_hot
from synth.neural.model import BETAS
from synth.neural.streams import StepStreams, Stream
from synth.neural.training import Gradient, PlainGradient, joined, train
from synth.neural.weights import load, set_gradient, to_arrays
from synth.privacy.dpsgd import PrivateGradient, StepPrivacy
from synth.privacy.noise import NoiseSource

WEIGHTS, MOMENTS = "critic/", "critic"  # in a party's local arrays
LARGEST_WEIGHT = 0.1
LARGEST_SLOPE = 1.0  # of one made-up row


@dataclass(frozen=True)
class Lessons:
    """How a critic learns; public."""

    privacy: StepPrivacy | None  # None: without privacy
    sample_rate: float
    expected_batch: float
    steps: int
    learning_rate: float


class BlockCritic:
    """The critic of some columns' blocks. All that it knows is in the party's local arrays."""

    def __init__(self, features: Features, columns: list[str]) -> None:
        self.features = features
        self.spans = [span for span in features.spans if span.column in columns]
        width = sum(span.width for span in self.spans)
        with torch.device("meta"):  # weights come from the party's luck, or from its last round
            self.network = nn.Sequential(
                nn.Linear(width, ceil(width / 2)), nn.LeakyReLU(0.2), nn.Linear(ceil(width / 2), 1)
            )
        self.network.to_empty(device="cpu")

    def judged(
        self, data: Records, labels: Ints, lessons: Lessons, local: Arrays, noise: NoiseSource
    ) -> tuple[Array, Arrays]:
        """[made-up rows, row width]: slopes of the critic after this round, 0 outside its blocks; new local arrays."""
        self._load(local, noise.child("critic"))
        luck = np.random.default_rng(0)  # numbers are in bins: no mode is drawn
        rows = self._own(torch.from_numpy(self.features.encode(data, luck)))
        made_up = self._own(one_hot(self.features, labels))
        adam = Adam(self.network.parameters(), lessons.learning_rate, betas=BETAS)
        gradient = self._gradient(lessons, noise.child("gradient"))

        def step(streams: StepStreams) -> None:
            real = gradient(lambda batch: -self.network(batch)[:, 0], joined(rows, lessons.sample_rate, streams))
            fake = torch.autograd.grad(self.network(made_up).mean(), list(self.network.parameters()))
            set_gradient(self.network, [a + b for a, b in zip(real, fake, strict=True)])
            adam.step()
            with torch.no_grad():
                for parameter in self.network.parameters():
                    parameter.clamp_(-LARGEST_WEIGHT, LARGEST_WEIGHT)

        local = train(step, {MOMENTS: adam}, lessons.steps, local, noise)
        weights = {WEIGHTS + name: array for name, array in to_arrays(self.network).items()}
        return self._slopes(made_up), local | weights

    def _gradient(self, lessons: Lessons, noise: NoiseSource) -> Gradient:
        if lessons.privacy is None:
            return PlainGradient(self.network, lessons.expected_batch)
        return PrivateGradient(self.network, lessons.privacy, noise)

    def _slopes(self, made_up: Tensor) -> Array:
        leaf = made_up.clone().requires_grad_()
        (slopes,) = torch.autograd.grad(self.network(leaf).sum(), leaf)
        slopes = slopes * (LARGEST_SLOPE / slopes.norm(dim=1, keepdim=True).clamp_min(LARGEST_SLOPE))
        found = np.zeros((len(made_up), self.features.width))
        start = 0
        for span in self.spans:
            found[:, span.slice] = slopes[:, start : start + span.width].double().numpy()
            start += span.width
        return found

    def _load(self, local: Arrays, luck: NoiseSource) -> None:
        stored = {name.removeprefix(WEIGHTS): array for name, array in local.items() if name.startswith(WEIGHTS)}
        if stored:
            load(self.network, stored)
            return
        stream = Stream.of(luck)
        with torch.no_grad():
            for parameter in self.network.parameters():
                size = parameter.shape[-1] if parameter.ndim == 2 else 1
                parameter.copy_(
                    (2 * stream.uniform(parameter.numel(), 1).view_as(parameter) - 1) * LARGEST_WEIGHT / size**0.5
                )

    def _own(self, rows: Tensor) -> Tensor:
        return torch.cat([rows[:, span.slice] for span in self.spans], dim=1)
