"""FedSTDG as published: numbers in, numbers out, squared error, and a batch's codes against luck.

    encoder  LSTM over the steps, all of its outputs, a code of 16
    decoder  a layer of 32, repeated, LSTM, a sigmoid a number

A number is the middle of its bin in its declared bounds (0 to 1), a label an entry of a block, a missing number 0. The
LSTM has one bias, as the paper's framework has, so that the printed sizes come out: 161 W + 512 L + 13,104 weights.
Only votes protect anybody here, and they protect whole clients: rows of a client may be coupled.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from synth.encoding.features import Features, Span
from synth.encoding.scales import Floats
from synth.errors import PlanError
from synth.neural.drawing import Codes
from synth.neural.latent import mmd
from synth.neural.model import RowLossModel, settings_of
from synth.neural.released import Released
from synth.neural.streams import Stream
from synth.plan import Plan
from synth.synthesizers.fedstdg.settings import FedstdgSettings


class PublishedNetwork(nn.Module):
    def __init__(self, settings: FedstdgSettings, features: Features, steps: int) -> None:
        super().__init__()
        units = settings.width
        self.spans, self.count = features.spans, steps
        self.places = {span.start: _places(features, span) for span in features.spans}  # of numbers: 0 to 1, a bin each
        self.inputs = sum(1 if span.kind == "mode" else span.width for span in self.spans) // steps
        self.listener = nn.Linear(self.inputs + units, 4 * units)
        self.code = nn.Linear(steps * units, settings.code_width)
        self.open = nn.Linear(settings.code_width, units)
        self.speaker = nn.Linear(2 * units, 4 * units)
        self.tell = nn.Linear(units, self.inputs)

    def numbers(self, rows: Tensor) -> Tensor:
        """[n, row width] -> [n, steps, numbers]."""
        parts = []
        for span in self.spans:
            block, places = rows[:, span.slice], torch.as_tensor(self.places[span.start]).float()
            parts.append((block @ places)[:, None] if span.kind == "mode" else block)
        return torch.cat(parts, dim=1).view(len(rows), self.count, self.inputs)

    def encode(self, numbers: Tensor) -> Tensor:  # [n, steps, numbers] -> [n, code]
        code: Tensor = self.code(_run(self.listener, numbers).flatten(1))
        return code

    def decode(self, codes: Tensor) -> Tensor:  # [n, code] -> [n, steps, numbers]
        opened = torch.relu(self.open(codes))[:, None].expand(-1, self.count, -1)
        return torch.sigmoid(self.tell(_run(self.speaker, opened)))


class Published(RowLossModel[PublishedNetwork]):
    fitted = False

    def __init__(self, plan: Plan) -> None:
        self.settings = settings_of(plan, FedstdgSettings)
        super().__init__(plan, self.settings.regime())
        self.learning_rate = self.settings.learning_rate
        if self.schedule.voting is None:
            raise PlanError("what was published of 'fedstdg' is trained by votes; set update to 'signds'.")
        layout = plan.layout
        if layout and (
            layout.static or layout.varies or {layout.encoding(each) for each in layout.stepped} != {"level"}
        ):
            raise PlanError("what was published of 'fedstdg' knows levels at every step only; use 'rigorous'.")

    def network(self, features: Features) -> PublishedNetwork:
        return PublishedNetwork(self.settings, features, self.plan.layout.steps if self.plan.layout else 1)

    def losses(self, network: PublishedNetwork, rows: Tensor, stream: Stream) -> Tensor:
        numbers = network.numbers(rows)
        return (network.decode(network.encode(numbers)) - numbers).square().mean((1, 2))

    def group_loss(self, network: PublishedNetwork, rows: Tensor, there: Tensor, stream: Stream) -> Tensor:
        codes = network.encode(network.numbers(rows))
        told = super().group_loss(network, rows, there, stream)
        return told + self.settings.penalty * mmd(codes, stream.normal(*codes.shape), there)

    def draw(
        self, network: PublishedNetwork, released: Released, count: int, codes: Codes, stream: Stream
    ) -> tuple[Tensor, Tensor]:
        made = network.decode(stream.normal(count, self.settings.code_width)).flatten(1)
        rows, place = torch.zeros(count, released.features.width), 0
        for span in network.spans:
            width = 1 if span.kind == "mode" else span.width
            part, place = made[:, place : place + width], place + width
            if span.kind == "mode":
                part = -(part - torch.as_tensor(network.places[span.start]).float()).abs()
            fixed = span.kind == "label" and span.column in codes
            rows[torch.arange(count), span.start + (codes[span.column] if fixed else part.argmax(1))] = 1.0
        return rows, torch.zeros(count)


def _places(features: Features, span: Span) -> Floats:
    """Middles of a number's bins within its declared bounds, and 0 for a missing one."""
    if span.kind != "mode":
        return np.zeros(0)
    scale, cuts = features.scales[span.column], features.cuts[span.column]
    edges = np.concatenate([[scale.lowest], cuts, [scale.highest]])
    middles = ((edges[1:] + edges[:-1]) / 2 - scale.lowest) / (scale.highest - scale.lowest)
    return np.append(middles, np.zeros(span.width - len(middles)))


def _run(gates: nn.Linear, inputs: Tensor) -> Tensor:
    """[n, steps, inputs] -> [n, steps, units]: an LSTM whose four gates are one layer."""
    units = gates.out_features // 4
    shown, memory = torch.zeros(len(inputs), units), torch.zeros(len(inputs), units)
    outputs = []
    for step in range(inputs.shape[1]):
        take, keep, show, new = gates(torch.cat([inputs[:, step], shown], dim=1)).chunk(4, dim=1)
        memory = torch.sigmoid(keep) * memory + torch.sigmoid(take) * torch.tanh(new)
        shown = torch.sigmoid(show) * torch.tanh(memory)
        outputs.append(shown)
    return torch.stack(outputs, dim=1)
