"""What autoencoders share: layers, a beginning at the released histograms, how far a row is from what is told back."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from synth.encoding.features import Span
from synth.neural.released import Released

OUTPUT_SCALE = 0.3  # of fresh weights: it begins near the released histograms


def layers(inputs: int, width: int, depth: int, outputs: int) -> nn.Sequential:
    hidden = [part for n in range(depth) for part in (nn.Linear(width if n else inputs, width), nn.ReLU())]
    return nn.Sequential(*hidden, nn.Linear(width, outputs))


def begin_at(released: Released, encoder: nn.Sequential, decoder: nn.Sequential) -> None:
    """The decoder begins with the released histograms, whatever the code; the encoder hears all of a row."""
    first, last = encoder[0], decoder[-1]
    if isinstance(first, nn.Linear) and isinstance(last, nn.Linear):
        loud = (released.features.width / len(released.features.spans)) ** 0.5 / 2  # of many inputs few are 1
        with torch.no_grad():
            last.bias.copy_(released.biases)
            last.weight.mul_(OUTPUT_SCALE)
            first.weight.mul_(loud)


def surprise(raw: Tensor, rows: Tensor, spans: Sequence[Span]) -> Tensor:
    """[rows]: - log p(row | code) of one-hot blocks, each by its own softmax."""
    return -torch.stack([(rows[:, s.slice] * raw[:, s.slice].log_softmax(1)).sum(1) for s in spans]).sum(0)
