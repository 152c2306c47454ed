"""Diffusion of whole columns, the rigorous form: a row loses columns until nothing is left, and a network learns to
put them back (absorbing diffusion, Austin et al., NeurIPS 2021; any order, Hoogeboom et al., ICLR 2022).

    loss    with k of d columns masked, k even over 1 … d: d / k · Σ over masked columns of the cross-entropy, whose
            mean over masks bounds - log p(row). Several masks a row are averaged inside the row's one gradient
    draw    everything masked; then one column at a time, in an order of each row's own, from the softmax

NOTE[DIFF]: FinDiff diffuses embeddings by Gaussian noise and takes the nearest label, which under DP, and without, is
far worse (decision 0015); `gaussian` has it for `profile: faithful`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.optim import Adam

from synth.encoding.features import Features
from synth.neural.drawing import Codes
from synth.neural.model import RowLossModel, settings_of
from synth.neural.released import Released
from synth.neural.streams import Stream
from synth.plan import Plan
from synth.synthesizers.findiff.settings import FindiffSettings

OUTPUT_SCALE = 0.3  # of fresh weights: it begins near the released histograms


class Unmasker(nn.Module):
    """What every column may be, from those that are seen and which are masked."""

    def __init__(self, settings: FindiffSettings, features: Features) -> None:
        super().__init__()
        self.spans, self.columns = features.spans, len(features.spans)
        inputs = features.width + self.columns
        widths = [inputs, *[settings.width] * settings.depth]
        pairs = itertools.pairwise(widths)
        self.body = nn.Sequential(*[part for a, b in pairs for part in (nn.Linear(a, b), nn.ReLU())])
        self.head = nn.Linear(settings.width, features.width)

    def forward(self, rows: Tensor, masked: Tensor) -> Tensor:  # […, row width], [… , columns] -> [… , row width], raw
        seen = torch.cat([rows * (1 - self.by_entry(masked)), masked], dim=-1)
        raw: Tensor = self.head(self.body(seen))
        return raw

    def by_entry(self, masked: Tensor) -> Tensor:
        """[…, columns] as [… , row width]."""
        widths = torch.tensor([span.width for span in self.spans], device="cpu")
        return masked.repeat_interleave(widths.to(masked.device), dim=-1)


class MaskedDiffusion(RowLossModel[Unmasker]):
    def __init__(self, plan: Plan) -> None:
        self.settings = settings_of(plan, FindiffSettings)
        super().__init__(plan, self.settings.regime())
        self.learning_rate, self.candidates = self.settings.learning_rate, self.settings.candidates

    def network(self, features: Features) -> Unmasker:
        return Unmasker(self.settings, features)

    def begin(self, network: Unmasker, released: Released, stream: Stream) -> None:
        """Whatever is masked begins as the released histograms have it, and what is seen is heard loudly: of many
        inputs few are 1."""
        first = network.body[0]
        with torch.no_grad():
            network.head.bias.copy_(released.biases)
            network.head.weight.mul_(OUTPUT_SCALE)
            if isinstance(first, nn.Linear):
                first.weight.mul_((first.in_features / network.columns) ** 0.5 / 2)

    def optimizers(self, network: Unmasker) -> Mapping[str, Adam]:
        return {"network": Adam(network.parameters(), self.learning_rate, betas=(0.9, 0.99))}

    def losses(self, network: Unmasker, rows: Tensor, stream: Stream) -> Tensor:
        masked, counts = masks(len(rows), self.settings.draws, network.columns, stream)
        raw = network(rows[:, None], masked)
        surprise = torch.stack(
            [-(rows[:, None, s.slice] * raw[..., s.slice].log_softmax(2)).sum(2) for s in network.spans], dim=2
        )
        return ((surprise * masked).sum(2) * network.columns / counts).mean(1)

    def draw(
        self, network: Unmasker, released: Released, count: int, codes: Codes, stream: Stream
    ) -> tuple[Tensor, Tensor]:
        """Columns that are fixed are seen from the start, so the others are drawn given them."""
        rows, masked = torch.zeros(count, released.features.width), torch.ones(count, network.columns)
        for column, span in enumerate(network.spans):
            if span.kind == "label" and span.column in codes:
                rows[:, span.start + codes[span.column]], masked[:, column] = 1.0, 0.0
        order = (stream.uniform(count, network.columns) + 2.0 * (1 - masked)).argsort(1)  # the fixed ones last
        everyone = torch.arange(count)
        for turn in range(int(masked[0].sum()) if count else 0):
            noisy = network(rows, masked) + stream.gumbel(count, released.features.width)
            for column, span in enumerate(network.spans):
                here = everyone[order[:, turn] == column]
                rows[here, span.start + noisy[here, span.slice].argmax(1)] = 1.0
                masked[here, column] = 0.0
        return rows, torch.zeros(count)


def masks(rows: int, draws: int, columns: int, stream: Stream) -> tuple[Tensor, Tensor]:
    """[rows, draws, columns] of which columns are masked (1), and [rows, draws] how many. A row's own draws are
    stratified: together they cover few, half and most columns, whatever the first one is."""
    start = stream.uniform(rows, 1)
    place = (start + torch.arange(draws) / draws) % 1.0
    counts = (place * columns).long().clamp(max=columns - 1) + 1
    luck = stream.uniform(rows, draws * columns).view(rows, draws, columns)
    ranks = luck.argsort(2).argsort(2)
    return (ranks < counts[..., None]).float(), counts
