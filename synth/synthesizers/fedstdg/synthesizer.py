"""FedSTDG made sound: encoder and decoder run over the steps of a record, and each step is a block of softmaxes.

    loss    - log p(record | code), step by step, + penalty × what its code adds to the distance from luck
    draw    a code from N(0, I); then step after step, each block from its softmax

What is said of the whole entity (static columns, means, the length) is the first step; a record without steps is one.

NOTE[DIFF]: the paper's decoder hears the code alone, so that steps drawn from it share nothing but the code; here it
also hears the step before. Its penalty couples records and its outputs are numbers: `published` has them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn

from synth.encoding.features import Features, Span
from synth.layout import Layout
from synth.neural.autoencoding import OUTPUT_SCALE, surprise
from synth.neural.drawing import Codes, chance, drawn
from synth.neural.latent import apart
from synth.neural.model import RowLossModel, settings_of
from synth.neural.released import Released
from synth.neural.streams import Stream
from synth.neural.synthesizer import NeuralSynthesizer
from synth.plan import Plan
from synth.synthesizers.fedstdg.published import Published
from synth.synthesizers.fedstdg.settings import FedstdgSettings


def fedstdg(plan: Plan) -> NeuralSynthesizer:
    return NeuralSynthesizer(Published(plan) if plan.profile == "faithful" else Recurrent(plan))


def in_steps(spans: Sequence[Span], layout: Layout | None) -> list[list[Span]]:
    """The blocks of every step in order, the entity's first; they lie side by side in a row."""
    steps: dict[int, list[Span]] = {}
    for span in spans:
        steps.setdefault(layout.place(span.column)[1] if layout else 0, []).append(span)
    return [steps[number] for number in sorted(steps)]


class Cell(nn.Module):
    """An LSTM cell of one Linear layer, whose gradients of single rows are cheap."""

    def __init__(self, inputs: int, units: int) -> None:
        super().__init__()
        self.gates = nn.Linear(inputs + units, 4 * units)

    def forward(self, heard: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        take, keep, show, new = self.gates(torch.cat([heard, state[0]], dim=1)).chunk(4, dim=1)
        memory = torch.sigmoid(keep + 1) * state[1] + torch.sigmoid(take) * torch.tanh(new)
        return torch.sigmoid(show) * torch.tanh(memory), memory


class Network(nn.Module):
    def __init__(self, settings: FedstdgSettings, steps: list[list[Span]]) -> None:
        super().__init__()
        units = self.units = settings.width
        self.steps, self.slices = steps, [slice(s[0].start, s[-1].start + s[-1].width) for s in steps]
        widths = [part.stop - part.start for part in self.slices]
        self.hear = nn.ModuleList([nn.Linear(width, units) for width in widths])
        self.listener, self.speaker = Cell(units, units), Cell(units, units)
        self.code = nn.Linear(units * len(steps), settings.code_width)
        self.open = nn.Linear(settings.code_width, units)
        self.tell = nn.ModuleList([nn.Linear(units, width) for width in widths])

    def encode(self, rows: Tensor) -> Tensor:  # [n, row width] -> [n, code]
        state, heard = self._silence(len(rows)), []
        for hear, part in zip(self.hear, self.slices, strict=True):
            state = self.listener(torch.relu(hear(rows[:, part])), state)
            heard.append(state[0])
        code: Tensor = self.code(torch.cat(heard, dim=1))
        return code

    def decode(self, codes: Tensor, said: Callable[[int, Tensor], Tensor]) -> Tensor:
        """[n, row width], raw. `said` makes of a step's raw output the blocks that the next step hears."""
        opened, before, raws = self.open(codes), codes.new_zeros(len(codes), self.units), []
        state = self._silence(len(codes))
        for step, tell in enumerate(self.tell):
            state = self.speaker(torch.relu(opened + before), state)
            raws.append(tell(state[0]))
            if step + 1 < len(self.tell):
                before = self.hear[step](said(step, raws[-1]))
        return torch.cat(raws, dim=1)

    def _silence(self, rows: int) -> tuple[Tensor, Tensor]:
        return torch.zeros(rows, self.units), torch.zeros(rows, self.units)


class Recurrent(RowLossModel[Network]):
    def __init__(self, plan: Plan) -> None:
        self.settings = settings_of(plan, FedstdgSettings)
        super().__init__(plan, self.settings.regime())
        self.learning_rate, self.candidates = self.settings.learning_rate, self.settings.candidates

    def network(self, features: Features) -> Network:
        return Network(self.settings, in_steps(features.spans, self.plan.layout))

    def begin(self, network: Network, released: Released, stream: Stream) -> None:
        """Every step begins as the released histograms have it, and hears all of a step: of many inputs few are 1."""
        with torch.no_grad():
            for hear, tell, part, spans in zip(network.hear, network.tell, network.slices, network.steps, strict=True):
                cast(nn.Linear, tell).bias.copy_(released.biases[part])
                cast(nn.Linear, tell).weight.mul_(OUTPUT_SCALE)
                cast(nn.Linear, hear).weight.mul_(((part.stop - part.start) / len(spans)) ** 0.5)

    def step_losses(self, network: Network, made_up: Stream) -> Callable[[Tensor, Stream], Tensor]:
        """The model's own sequences, encoded again, are what every code is held against; and so is luck."""
        luck = made_up.normal(self.settings.own_rows, self.settings.code_width)
        own, _ = self._spoken(network, luck, {}, made_up)
        return partial(self._losses, network, network.encode(own).detach(), luck)

    def losses(self, network: Network, rows: Tensor, stream: Stream) -> Tensor:
        return self.step_losses(network, stream)(rows, stream)

    def _losses(self, network: Network, own: Tensor, luck: Tensor, rows: Tensor, stream: Stream) -> Tensor:
        codes = network.encode(rows)
        codes = codes + self.settings.code_noise * stream.normal(*codes.shape)
        raw = network.decode(codes, lambda step, _: rows[:, network.slices[step]])
        spans = [span for step in network.steps for span in step]
        return surprise(raw, rows, spans) + self.settings.penalty * apart(codes, own, luck)

    def draw(
        self, network: Network, released: Released, count: int, codes: Codes, stream: Stream
    ) -> tuple[Tensor, Tensor]:
        rows, raw = self._spoken(network, stream.normal(count, self.settings.code_width), codes, stream)
        return rows, chance(raw, [span for step in network.steps for span in step], codes)

    def _spoken(self, network: Network, luck: Tensor, codes: Codes, stream: Stream) -> tuple[Tensor, Tensor]:
        """Rows drawn from codes step by step, and the raw outputs that they were drawn from."""
        made: list[Tensor] = []

        def said(step: int, raw: Tensor) -> Tensor:
            here = network.slices[step].start
            spans = [replace(span, start=span.start - here) for span in network.steps[step]]
            made.append(drawn(raw.detach(), spans, codes, stream))
            return made[-1]

        raw = network.decode(luck, said)
        said(len(network.steps) - 1, raw[:, network.slices[-1]])
        return torch.cat(made, dim=1), raw
