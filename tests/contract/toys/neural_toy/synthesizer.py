"""One cell and one head of Linear layers, run once for every block of a row."""

from __future__ import annotations

import torch
from synth.synthesizers.neural_toy.settings import ToySettings
from torch import Tensor, nn

from synth.encoding.features import Features
from synth.neural.drawing import Codes, drawn
from synth.neural.model import RowLossModel, settings_of
from synth.neural.released import Released
from synth.neural.streams import Stream
from synth.neural.synthesizer import NeuralSynthesizer
from synth.plan import Plan


class Network(nn.Module):
    def __init__(self, features: Features, width: int) -> None:
        super().__init__()
        self.spans, self.width = features.spans, width
        self.cell, self.head = nn.Linear(features.width + width, width), nn.Linear(width, features.width)

    def next(self, state: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
        """The state after the blocks known so far, and a guess at all blocks."""
        state = torch.tanh(self.cell(torch.cat([known, state], dim=1)))
        return state, self.head(state)


class Autoregression(RowLossModel[Network]):
    learning_rate = 1e-2

    def __init__(self, plan: Plan) -> None:
        self.settings = settings_of(plan, ToySettings)
        super().__init__(plan, self.settings.regime())

    def network(self, features: Features) -> Network:
        return Network(features, self.settings.width)

    def losses(self, network: Network, rows: Tensor, stream: Stream) -> Tensor:
        state, known, loss = rows.new_zeros(len(rows), network.width), torch.zeros_like(rows), rows.new_zeros(len(rows))
        for span in network.spans:
            state, guess = network.next(state, known)
            block, wanted = guess[:, span.slice], rows[:, span.slice]
            if span.kind == "alpha":
                loss = loss + (torch.tanh(block) - wanted).square().sum(1)
            else:
                loss = loss - (wanted * block.log_softmax(1)).sum(1)
            known = known.clone()
            known[:, span.slice] = wanted
        return loss

    def draw(
        self, network: Network, released: Released, count: int, codes: Codes, stream: Stream
    ) -> tuple[Tensor, Tensor]:
        state, known = torch.zeros(count, network.width), torch.zeros(count, released.features.width)
        for span in network.spans:
            state, guess = network.next(state, known)
            known[:, span.slice] = drawn(guess, [span], codes, stream)[:, span.slice]
        return known, torch.zeros(count)


def Toy(plan: Plan) -> NeuralSynthesizer:
    return NeuralSynthesizer(Autoregression(plan))
