"""What a party does in one round: some discriminator and generator steps from the weights it was sent.

All randomness comes from the party's noise source: row sampling and gradient noise directly, the rest through streams
seeded from it, of which none that a real row may advance is used for anything else (see `streams`). Adam's moments
stay with the party between rounds.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim import Adam

from synth.encoding.features import Features
from synth.interface import Arrays
from synth.privacy.dpsgd import PrivateGradient, poisson_batch
from synth.privacy.noise import NoiseSource
from synth.synthesizers.ctgan.conditions import Conditions, TrainingBySampling
from synth.synthesizers.ctgan.networks import Discriminator
from synth.synthesizers.ctgan.schedule import Schedule
from synth.synthesizers.ctgan.settings import CtganSettings
from synth.synthesizers.ctgan.steps import (
    DiscriminatorStep,
    Pairs,
    PlainStep,
    PrivateStep,
    WassersteinStep,
    generator_loss,
    made_up,
    set_gradient,
)
from synth.synthesizers.ctgan.streams import StepStreams
from synth.synthesizers.ctgan.weights import DISCRIMINATOR, GENERATOR, Networks, load_moments, moments_to_arrays

SECOND_BETA = 0.9  # Adam's, as published


@dataclass
class LocalTraining:
    """One party's round."""

    schedule: Schedule
    features: Features
    conditions: Conditions  # from the released histogram
    rows: Tensor  # [n, row width], encoded; private
    party: str

    def run(self, networks: Networks, steps: int, local: Arrays, noise: NoiseSource) -> Arrays:
        """Train in place; the party's new local arrays."""
        settings = self.schedule.settings
        optimizers = {
            GENERATOR: _adam(networks.generator, settings.generator.learning_rate, settings),
            DISCRIMINATOR: _adam(networks.discriminator, settings.discriminator.learning_rate, settings),
        }
        for prefix, adam in optimizers.items():
            load_moments(adam, prefix, local)
        self._steps(networks, optimizers, steps, noise)
        stored: Arrays = {}
        for prefix, adam in optimizers.items():
            stored |= moments_to_arrays(prefix, adam)
        return local | stored

    def _steps(self, networks: Networks, optimizers: dict[str, Adam], steps: int, noise: NoiseSource) -> None:
        generator, discriminator, spans = networks.generator, networks.discriminator, self.features.spans
        settings = self.schedule.settings
        batches = self._batches()
        gradient = self._discriminator_step(discriminator, noise.child("gradient"))
        for step in range(1, steps + 1):
            streams = StepStreams.of(noise, step)
            real, fake_conditions = batches.draw(streams)
            fake = made_up(generator, fake_conditions, spans, streams.made_up)
            set_gradient(discriminator, gradient(real, fake, streams))
            optimizers[DISCRIMINATOR].step()
            if step % settings.discriminator.steps_per_generator_step == 0:
                loss = generator_loss(networks, batches.conditions, spans, settings, streams.made_up)
                set_gradient(generator, torch.autograd.grad(loss, list(generator.parameters())))
                optimizers[GENERATOR].step()

    def _batches(self) -> PoissonBatches | SampledBatches:
        settings = self.schedule.settings
        if self.schedule.faithful and len(self.rows):
            size = max(round(self.schedule.expected_batch(self.party)), settings.discriminator.pac)
            size -= size % settings.discriminator.pac
            return SampledBatches(TrainingBySampling(self.features, self.rows), size)
        return PoissonBatches(self.rows, self.conditions, settings)

    def _discriminator_step(self, discriminator: Discriminator, source: NoiseSource) -> DiscriminatorStep:
        if self.schedule.private:
            privacy = self.schedule.step_privacy(self.party)
            return PrivateStep(discriminator, PrivateGradient(discriminator, privacy, source))
        if self.schedule.settings.discriminator.loss == "wasserstein":
            return WassersteinStep(discriminator)
        return PlainStep(discriminator, self.schedule.expected_batch(self.party))


@dataclass
class PoissonBatches:
    """Every row joins by its own coin and brings its own condition; made-up rows follow the released histogram."""

    rows: Tensor
    conditions: Conditions
    settings: CtganSettings

    def draw(self, streams: StepStreams) -> tuple[Pairs, Tensor]:
        chosen = torch.from_numpy(poisson_batch(streams.rows, len(self.rows), self.settings.sample_rate))
        pac = self.settings.discriminator.pac
        rows = self.rows[chosen[: len(chosen) - len(chosen) % pac]]
        fake_conditions = self.conditions.draw(self.settings.discriminator.fake_batch, streams.made_up)
        return (rows, self.conditions.of(rows, streams.conditions)), fake_conditions


@dataclass
class SampledBatches:
    """Training-by-sampling, as published: made-up rows get the real rows' conditions, in another order."""

    sampler: TrainingBySampling
    size: int

    @property
    def conditions(self) -> Conditions:
        return self.sampler.conditions

    def draw(self, streams: StepStreams) -> tuple[Pairs, Tensor]:
        rows, conditions = self.sampler.batch(self.size, streams.conditions)
        return (rows, conditions), conditions[streams.conditions.rng.permutation(self.size)]


def _adam(module: torch.nn.Module, learning_rate: float, settings: CtganSettings) -> Adam:
    betas = (settings.momentum, SECOND_BETA)
    return Adam(module.parameters(), learning_rate, betas=betas, weight_decay=settings.weight_decay)
