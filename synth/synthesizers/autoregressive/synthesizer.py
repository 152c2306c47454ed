"""p(row) = Π p(column | columns before it), each factor a small network on the one-hot prefix with a softmax over bins.

    loss    - log p(row), exactly, in one pass: every layer sees a row once, so a row's gradient is cheap
    draw    column after column; where a label is fixed it is taken, and the row weighs as much as it was likely

The first column is drawn from its released histogram and needs no network; every other network starts out guessing the
released histogram of its column whatever comes before it, so that private steps are spent on dependence alone. The
order of the columns is a function of the schema and of the released bins: see `in_order`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from synth.encoding.features import Features, Span
from synth.neural.drawing import Codes
from synth.neural.model import RowLossModel, settings_of
from synth.neural.released import Released
from synth.neural.streams import Stream
from synth.neural.synthesizer import NeuralSynthesizer
from synth.plan import Plan
from synth.synthesizers.autoregressive.settings import AutoregressiveSettings

HEAD_SCALE = 0.3  # of a fresh head: it begins near the released histogram


def autoregressive(plan: Plan) -> NeuralSynthesizer:
    return NeuralSynthesizer(Autoregression(plan))


def in_order(spans: Sequence[Span], target: str | None) -> list[Span]:
    """The target last, so that what predicts it is learned as such; before it the columns in the schema's order."""
    return sorted(spans, key=lambda span: span.column == target)


class Network(nn.Module):
    """For every column but the first, one hidden layer on the blocks of the columns before it."""

    def __init__(self, spans: Sequence[Span], *, width: int) -> None:
        super().__init__()
        self.spans = list(spans)
        befores = [sum(span.width for span in self.spans[:place]) for place in range(len(self.spans))]
        self.hidden = nn.ModuleList([nn.Linear(before, width) for before in befores[1:]])
        self.heads = nn.ModuleList([nn.Linear(width, span.width) for span in self.spans[1:]])

    def layers(self, place: int) -> tuple[nn.Linear, nn.Linear]:
        return cast(nn.Linear, self.hidden[place - 1]), cast(nn.Linear, self.heads[place - 1])

    def guess(self, place: int, prefix: Tensor) -> Tensor:  # [n, widths before] -> [n, width of the column], raw
        hidden, head = self.layers(place)
        raw: Tensor = head(torch.relu(hidden(prefix)))
        return raw

    def arranged(self, rows: Tensor) -> Tensor:
        """The blocks of rows in the order in which they are guessed."""
        return torch.cat([rows[:, span.slice] for span in self.spans], dim=1)


class Autoregression(RowLossModel[Network]):
    def __init__(self, plan: Plan) -> None:
        self.settings = settings_of(plan, AutoregressiveSettings)
        super().__init__(plan, self.settings.regime())
        self.learning_rate, self.candidates = self.settings.learning_rate, self.settings.candidates

    def network(self, features: Features) -> Network:
        return Network(in_order(features.spans, self.plan.modelled.target), width=self.settings.width)

    def begin(self, network: Network, released: Released, stream: Stream) -> None:
        """A prefix has one 1 a column, however wide it is, so hidden layers start as if it were that narrow."""
        with torch.no_grad():
            for place, span in enumerate(network.spans[1:], start=1):
                hidden, head = network.layers(place)
                hidden.weight.mul_((hidden.in_features / place) ** 0.5)
                head.weight.mul_(HEAD_SCALE)
                head.bias.copy_(released.block_shares[span.start].log())

    def losses(self, network: Network, rows: Tensor, stream: Stream) -> Tensor:
        arranged, loss, start = network.arranged(rows), rows.new_zeros(len(rows)), network.spans[0].width
        for place, span in enumerate(network.spans[1:], start=1):
            likely = network.guess(place, arranged[:, :start]).log_softmax(1)
            loss = loss - (arranged[:, start : start + span.width] * likely).sum(1)
            start += span.width
        return loss

    def draw(
        self, network: Network, released: Released, count: int, codes: Codes, stream: Stream
    ) -> tuple[Tensor, Tensor]:
        rows, score = torch.zeros(count, released.features.width), torch.zeros(count)
        prefix = torch.zeros(count, 0)
        for place, span in enumerate(network.spans):
            shares = released.block_shares[span.start].log()
            raw = network.guess(place, prefix) if place else shares.expand(count, -1)
            if span.column in codes:
                label = torch.full((count,), codes[span.column])
                score = score + raw.log_softmax(1)[:, label[0]] - shares[label[0]] if count else score
            else:
                label = (raw + stream.gumbel(*raw.shape)).argmax(1)
            block = nn.functional.one_hot(label, span.width).float()
            rows[:, span.slice] = block
            prefix = torch.cat([prefix, block], dim=1)
        return rows, score

    def figures(self, network: Network, released: Released, stream: Stream) -> dict[str, float]:
        """The mean surprise of rows that the network draws by itself: its entropy, which falls as it learns."""
        rows, _ = self.draw(network, released, 500, {}, stream)
        return {"entropy": float(self.losses(network, rows, stream).mean())}
