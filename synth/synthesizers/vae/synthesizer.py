"""FedVAE (TU Wien 2024; TVAE, Xu et al. 2019): encoder and decoder are both averaged, a row's loss is its own ELBO.

    loss    - log p(row | code) + KL(code | row ‖ N(0, I)) / loss factor, the code drawn once a row
    draw    a code from N(0, I), and every block of the row from the decoder's softmax

NOTE[DIFF]: TVAE takes the largest entry of a block, and rare labels vanish; here a block is drawn. `profile: faithful`
takes the largest.
NOTE[DIFF]: TVAE's spread of each number is a bare parameter, whose gradients of single rows no engine finds. Here it is
a Linear layer of the constant 1: the same numbers, a gradient a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn
from torch.optim import Adam

from synth.encoding.features import Features
from synth.neural.autoencoding import begin_at, layers
from synth.neural.drawing import Codes, chance, drawn
from synth.neural.model import RowLossModel, settings_of
from synth.neural.released import Released
from synth.neural.streams import Stream
from synth.neural.synthesizer import NeuralSynthesizer
from synth.plan import Plan
from synth.synthesizers.vae.settings import VaeSettings

SPREADS = (0.01, 1.0)  # of a number around its guess, as TVAE's
FIRST_SPREAD = 0.1
MOST_LOG_VARIANCE = 8.0


def vae(plan: Plan) -> NeuralSynthesizer:
    return NeuralSynthesizer(Autoencoder(plan))


class Network(nn.Module):
    """Encoder, decoder, and the spreads of numbers where a layout has any."""

    def __init__(self, settings: VaeSettings, features: Features) -> None:
        super().__init__()
        width, code = settings.width, settings.code_width
        self.spans = features.spans
        self.encoder = layers(features.width, width, settings.depth, 2 * code)
        self.decoder = layers(code, width, settings.depth, features.width)
        numbers = sum(span.kind == "alpha" for span in features.spans)
        self.spread = nn.Linear(1, numbers, bias=False) if numbers else None

    def encode(self, rows: Tensor) -> tuple[Tensor, Tensor]:  # [n, row width] -> [n, code], [n, code]
        mean, log_variance = self.encoder(rows).chunk(2, dim=1)
        return mean, log_variance.clamp(-MOST_LOG_VARIANCE, MOST_LOG_VARIANCE)

    def spreads(self, rows: int) -> Iterator[Tensor]:
        """[rows] for each number in the order of the layout."""
        if self.spread is not None:
            yield from self.spread(torch.ones(rows, 1)).clamp(*SPREADS).unbind(1)


class Autoencoder(RowLossModel[Network]):
    def __init__(self, plan: Plan) -> None:
        self.settings = settings_of(plan, VaeSettings)
        super().__init__(plan, self.settings.regime())
        self.learning_rate, self.candidates = self.settings.learning_rate, self.settings.candidates
        self.fitted = not self.schedule.faithful

    def network(self, features: Features) -> Network:
        return Network(self.settings, features)

    def begin(self, network: Network, released: Released, stream: Stream) -> None:
        if network.spread is not None:
            nn.init.constant_(network.spread.weight, FIRST_SPREAD)
        if self.schedule.faithful:
            return
        begin_at(released, network.encoder, network.decoder)

    def optimizers(self, network: Network) -> Mapping[str, Adam]:
        betas = (0.9, 0.999 if self.schedule.faithful else 0.99)
        rate, decay = self.learning_rate, self.settings.weight_decay
        return {"network": Adam(network.parameters(), rate, betas=betas, weight_decay=decay)}

    def losses(self, network: Network, rows: Tensor, stream: Stream) -> Tensor:
        mean, log_variance = network.encode(rows)
        code = mean + (log_variance / 2).exp() * stream.normal(*mean.shape)
        raw = network.decoder(code)
        surprise = (mean.square() + log_variance.exp() - log_variance - 1).sum(1) / 2
        return _told_back(network, raw, rows) + surprise / self.settings.loss_factor

    def draw(
        self, network: Network, released: Released, count: int, codes: Codes, stream: Stream
    ) -> tuple[Tensor, Tensor]:
        raw = network.decoder(stream.normal(count, self.settings.code_width))
        if not self.schedule.faithful:
            return drawn(raw, network.spans, codes, stream), chance(raw, network.spans, codes)
        rows = drawn(raw, network.spans, codes, stream, likeliest=True)
        numbers = [span for span in network.spans if span.kind == "alpha"]
        for span, spread in zip(numbers, network.spreads(count), strict=True):
            rows[:, span.start] += spread * stream.normal(count, 1)[:, 0]
        return rows, torch.zeros(count)


def _told_back(network: Network, raw: Tensor, rows: Tensor) -> Tensor:
    """[rows]: - log p(row | code), every block by its own."""
    loss, spreads = rows.new_zeros(len(rows)), network.spreads(len(rows))
    for span in network.spans:
        guess, wanted = raw[:, span.slice], rows[:, span.slice]
        if span.kind == "alpha":
            spread = next(spreads)
            loss = loss + (wanted - torch.tanh(guess))[:, 0].square() / (2 * spread.square()) + spread.log()
        else:
            loss = loss - (wanted * guess.log_softmax(1)).sum(1)
    return loss
