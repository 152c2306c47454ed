"""DP-Fed-CTGAN (Leitner 2023); specification: rigorous by default, the published protocol under `profile: faithful`,
Fed-CTGAN with `privacy: none`, Fed-TGAN with `weighting: similarity`, CTGAN with one party.

    begin   the generator learns the released histograms                     (aggregator)
    step    a discriminator step, noisy on real rows; a generator step       (party)
    draw    rows by the generator, scored by the discriminator               (aggregator)
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import Adam

from synth.encoding.features import Features
from synth.encoding.scales import Floats
from synth.neural.drawing import Codes, drawn
from synth.neural.model import Model, settings_of
from synth.neural.released import Released
from synth.neural.streams import StepStreams, Stream
from synth.neural.synthesizer import NeuralSynthesizer
from synth.neural.training import LocalRound, Step
from synth.neural.weights import set_gradient
from synth.plan import Plan
from synth.synthesizers.ctgan.batches import batches_of
from synth.synthesizers.ctgan.conditions import Conditions
from synth.synthesizers.ctgan.networks import Discriminator, Networks
from synth.synthesizers.ctgan.settings import CtganSettings
from synth.synthesizers.ctgan.soundness import check
from synth.synthesizers.ctgan.steps import (
    DiscriminatorStep,
    PlainStep,
    PrivateStep,
    WassersteinStep,
    generator_loss,
    made_up,
)
from synth.synthesizers.ctgan.warm_start import settle_batch_norm, warm_start

SECOND_BETA = 0.9  # Adam's, as published
GENERATOR, DISCRIMINATOR = "generator", "discriminator"


def ctgan(plan: Plan) -> NeuralSynthesizer:
    return NeuralSynthesizer(Ctgan(plan))


class Ctgan(Model[Networks]):
    def __init__(self, plan: Plan) -> None:
        self.settings = settings_of(plan, CtganSettings)
        super().__init__(plan, self.settings.regime())
        check(self.schedule, self.settings)
        critic = self.settings.discriminator
        self.candidates, self.fitted = self.settings.candidates, not self.schedule.faithful
        self.scored = self.fitted and critic.loss == "cross-entropy" and critic.pac == 1  # a log density ratio

    def network(self, features: Features) -> Networks:
        return Networks(self.settings, features)

    def begin(self, network: Networks, released: Released, stream: Stream) -> None:
        conditions = self.conditions(released.features, released.frequencies)
        steps = self.settings.generator.warm_start_steps
        warm_start(network.generator, released.features, conditions, released.block_shares, steps, stream)

    def optimizers(self, network: Networks) -> Mapping[str, Adam]:
        def adam(module: nn.Module, rate: float) -> Adam:
            betas = (self.settings.momentum, SECOND_BETA)
            return Adam(module.parameters(), rate, betas=betas, weight_decay=self.settings.weight_decay)

        return {
            GENERATOR: adam(network.generator, self.settings.generator.learning_rate),
            DISCRIMINATOR: adam(network.discriminator, self.settings.discriminator.learning_rate),
        }

    def step(self, network: Networks, local: LocalRound, optimizers: Mapping[str, Adam]) -> Step:
        """A generator step follows every few discriminator steps, counted from the start of the round."""
        generator, discriminator, spans = network.generator, network.discriminator, local.asked.features.spans
        batches = batches_of(local, self.conditions(local.asked.features, local.asked.frequencies), self.settings)
        gradient = self._discriminator_step(discriminator, local)
        taken = 0

        def step(streams: StepStreams) -> None:
            nonlocal taken
            taken += 1
            real, fake_conditions = batches.draw(streams)
            fake = made_up(generator, fake_conditions, spans, streams.made_up)
            set_gradient(discriminator, gradient(real, fake, streams))
            optimizers[DISCRIMINATOR].step()
            if taken % self.settings.discriminator.steps_per_generator_step == 0:
                loss = generator_loss(network, batches.conditions, spans, self.settings, streams.made_up)
                set_gradient(generator, torch.autograd.grad(loss, list(generator.parameters())))
                optimizers[GENERATOR].step()

        return step

    def settle(self, network: Networks, released: Released) -> None:
        settle_batch_norm(network.generator, self.conditions(released.features, released.frequencies))

    def draw(
        self, network: Networks, released: Released, count: int, codes: Codes, stream: Stream
    ) -> tuple[Tensor, Tensor]:
        asked = self.conditions(released.features, released.frequencies).fixed(codes, count, stream)
        rows = drawn(network.generator(asked, stream), released.features.spans, codes, stream)
        return rows, network.discriminator(rows, asked) if self.scored else torch.zeros(count)

    def figures(self, network: Networks, released: Released, stream: Stream) -> dict[str, float]:
        """How the latest networks judge fresh made-up rows."""
        conditions = self.conditions(released.features, released.frequencies)
        asked = conditions.draw(self.settings.discriminator.fake_batch, stream)
        score = network.discriminator(*made_up(network.generator, asked, released.features.spans, stream))
        return {"generator": float(F.softplus(-score).mean()), "discriminator": float(F.softplus(score).mean())}

    def conditions(self, features: Features, frequencies: Mapping[str, Floats]) -> Conditions:
        return Conditions(features, frequencies, None if self.schedule.faithful else self.plan.modelled.target)

    def _discriminator_step(self, discriminator: Discriminator, local: LocalRound) -> DiscriminatorStep:
        if self.schedule.private:
            clip = self.schedule.regime.l2_clip_norm
            return PrivateStep(discriminator, local.private_gradient(discriminator), clip)
        if self.settings.discriminator.loss == "wasserstein":
            return WassersteinStep(discriminator)
        return PlainStep(discriminator, self.schedule.expected_batch(local.party))
