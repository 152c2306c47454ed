"""Networks of every kind that DP-SGD may train, and which engine each should get."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from synth.privacy.bookkeeping import Bookkeeping
from synth.privacy.layers import DPGRU, DPLSTM
from synth.privacy.per_row import PerRowGradients

STEPS, WIDTH = 5, 6


@dataclass(frozen=True)
class Case:
    module: Callable[[], nn.Module]
    engine: type
    whole_numbers: bool = False  # rows are codes


class Plain(nn.Module):
    def __init__(self, norm: bool = False) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(STEPS * WIDTH, 8), nn.LayerNorm(8) if norm else nn.Identity()
        self.last = nn.Linear(8, 1)

    def forward(self, rows: Tensor) -> Tensor:
        return self.last(torch.tanh(self.norm(self.first(rows.flatten(1)))))[:, 0]  # type: ignore[no-any-return]


class Recurrent(nn.Module):
    """A cell and a head of Linear layers, at every step."""

    def __init__(self, bias: bool = True) -> None:
        super().__init__()
        self.cell, self.head = nn.Linear(WIDTH + 7, 7, bias=bias), nn.Linear(7, WIDTH, bias=bias)

    def forward(self, rows: Tensor) -> Tensor:
        state, loss = rows.new_zeros(len(rows), 7), rows.new_zeros(len(rows))
        for step in rows.unbind(1):
            loss = loss + (self.head(state) - step).square().sum(1)
            state = torch.tanh(self.cell(torch.cat([state, step], dim=1)))  # the last state reaches no loss
        return loss


class InTime(nn.Module):
    """[rows, time, in] in one pass, and the layer before it once."""

    def __init__(self) -> None:
        super().__init__()
        self.steps, self.last = nn.Linear(WIDTH, 4), nn.Linear(4 * STEPS, 1)

    def forward(self, rows: Tensor) -> Tensor:
        return self.last(torch.tanh(self.steps(rows)).flatten(1))[:, 0]  # type: ignore[no-any-return]


class SeveralDraws(nn.Module):
    """One row under several fixed shifts, as a diffusion model sees it under several noises."""

    def __init__(self, norm: bool = False) -> None:
        super().__init__()
        self.inner = Plain(norm)

    def forward(self, rows: Tensor) -> Tensor:
        return torch.stack([self.inner(rows + shift) for shift in (0.0, 0.5, -1.0)]).square().mean(0)


class Convolved(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution, self.last = nn.Conv1d(STEPS, 4, 3), nn.Linear(4 * (WIDTH - 2), 1)

    def forward(self, rows: Tensor) -> Tensor:
        return self.last(torch.tanh(self.convolution(rows)).flatten(1))[:, 0]  # type: ignore[no-any-return]


class Embedded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.codes, self.last = nn.Embedding(9, 4), nn.Linear(4 * STEPS * WIDTH, 1)

    def forward(self, rows: Tensor) -> Tensor:
        return self.last(torch.tanh(self.codes(rows)).flatten(1))[:, 0]  # type: ignore[no-any-return]


class Remembering(nn.Module):
    def __init__(self, kind: Callable[..., nn.Module]) -> None:
        super().__init__()
        self.memory, self.last = kind(WIDTH, 7, batch_first=True), nn.Linear(7, 1)

    def forward(self, rows: Tensor) -> Tensor:
        return self.last(self.memory(rows)[0]).sum((1, 2))  # type: ignore[no-any-return]


CASES = {
    "linear": Case(Plain, Bookkeeping),
    "recurrent": Case(Recurrent, Bookkeeping),
    "recurrent without bias": Case(lambda: Recurrent(bias=False), Bookkeeping),
    "in time": Case(InTime, Bookkeeping),
    "several draws": Case(SeveralDraws, Bookkeeping),
    "layer norm": Case(lambda: Plain(norm=True), PerRowGradients),
    "several draws, layer norm": Case(lambda: SeveralDraws(norm=True), PerRowGradients),
    "convolution": Case(Convolved, PerRowGradients),
    "embedding": Case(Embedded, PerRowGradients, whole_numbers=True),
    "GRU": Case(lambda: Remembering(DPGRU), PerRowGradients),
    "LSTM": Case(lambda: Remembering(DPLSTM), PerRowGradients),
}
