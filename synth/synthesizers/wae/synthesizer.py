"""DP-Fed-WAE (Jiang, Wang and Grossklags): a Wasserstein autoencoder whose clients vote for weights, or DP-SGD.

    loss    - log p(row | code) + penalty × what its code adds to the distance from luck (see `neural.latent`)
    draw    a code from N(0, I), and every block of the row from the decoder's softmax

NOTE[DIFF]: the paper's penalty couples rows, its outputs are independent sigmoids, and it takes the likeliest label, so
that rare ones vanish. Here each row has a penalty of its own, blocks have a softmax and are drawn from it; `profile:
faithful` is as published.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from synth.encoding.features import Features
from synth.neural.autoencoding import begin_at, layers, surprise
from synth.neural.drawing import Codes, chance, drawn
from synth.neural.latent import apart, mmd
from synth.neural.model import RowLossModel, settings_of
from synth.neural.released import Released
from synth.neural.streams import Stream
from synth.neural.synthesizer import NeuralSynthesizer
from synth.plan import Plan
from synth.synthesizers.wae.settings import WaeSettings


def wae(plan: Plan) -> NeuralSynthesizer:
    return NeuralSynthesizer(Autoencoder(plan))


class Network(nn.Module):
    def __init__(self, settings: WaeSettings, features: Features) -> None:
        super().__init__()
        self.spans = features.spans
        self.encoder = layers(features.width, settings.width, settings.depth, settings.code_width)
        self.decoder = layers(settings.code_width, settings.width, settings.depth, features.width)


class Autoencoder(RowLossModel[Network]):
    def __init__(self, plan: Plan) -> None:
        self.settings = settings_of(plan, WaeSettings)
        super().__init__(plan, self.settings.regime())
        self.learning_rate, self.candidates = self.settings.learning_rate, self.settings.candidates
        self.fitted = not self.schedule.faithful

    def network(self, features: Features) -> Network:
        return Network(self.settings, features)

    def begin(self, network: Network, released: Released, stream: Stream) -> None:
        if not self.schedule.faithful:
            begin_at(released, network.encoder, network.decoder)

    def step_losses(self, network: Network, made_up: Stream) -> Callable[[Tensor, Stream], Tensor]:
        """The model's own rows, encoded again, are what every row's code is held against; and so is luck."""
        luck = made_up.normal(self.settings.own_rows, self.settings.code_width)
        raw = network.decoder(luck).detach()
        own = network.encoder(drawn(raw, network.spans, {}, made_up)).detach()
        return partial(self._losses, network, own, luck)

    def losses(self, network: Network, rows: Tensor, stream: Stream) -> Tensor:
        return self.step_losses(network, stream)(rows, stream)

    def _losses(self, network: Network, own: Tensor, luck: Tensor, rows: Tensor, stream: Stream) -> Tensor:
        codes: Tensor = network.encoder(rows)
        codes = codes + self.settings.code_noise * stream.normal(*codes.shape)
        told = surprise(network.decoder(codes), rows, network.spans)
        return told + self.settings.penalty * apart(codes, own, luck)

    def group_loss(self, network: Network, rows: Tensor, there: Tensor, stream: Stream) -> Tensor:
        """As published: every entry of a row by itself, and the batch's codes against as many of luck."""
        if not self.schedule.faithful:
            return super().group_loss(network, rows, there, stream)
        codes = network.encoder(rows)
        told = F.binary_cross_entropy_with_logits(network.decoder(codes), rows, reduction="none").mean(1)
        luck = stream.normal(*codes.shape)
        return (told * there).sum() / there.sum().clamp(min=1.0) + self.settings.penalty * mmd(codes, luck, there)

    def draw(
        self, network: Network, released: Released, count: int, codes: Codes, stream: Stream
    ) -> tuple[Tensor, Tensor]:
        raw = network.decoder(stream.normal(count, self.settings.code_width))
        if self.schedule.faithful:
            return drawn(raw, network.spans, codes, stream, likeliest=True), torch.zeros(count)
        return drawn(raw, network.spans, codes, stream), chance(raw, network.spans, codes)
