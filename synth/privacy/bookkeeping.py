"""Clipped sums for networks of Linear layers without a gradient per row, at little more than the price of SGD.

DP-SGD needs the norm of every row's gradient, not the gradient itself. For a Linear layer the gradient of one row is
the outer product g aᵀ of the gradient g at the layer's output and the layer's input a (and g for the bias), so its
squared norm is |g|² (|a|² + 1). One forward pass keeps the inputs, one backward pass finds the output gradients, and
the clipped sum is one matrix product per layer, (c·g)ᵀ a ("book-keeping", Bu et al., arXiv 2210.00038).

A layer may see a row several times: recurrent cells, a head at every step, several noise draws, inputs of shape
[rows, time, in]. The passes are stacked as [rows, time, ·], the row's gradient is Σₜ gₜ aₜᵀ, and its squared norm is
Σₜₛ (gₜ·gₛ)(aₜ·aₛ + 1), two small Gram matrices a row. Its terms may cancel, and then what float64 does to them is no
longer small beside the norm. So a row's norm is never taken for less than 1 / MOST_CANCELLING of the sum of its
passes' norms: a row that cancels further is clipped to less than the clip norm, which is sound.
`dpsgd.lattice_sensitivity` has the error that this bounds.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor, nn

from synth.errors import PrivacyError
from synth.privacy.row_by_row import linear
from synth.privacy.supported import (
    PerExampleLoss,
    Sums,
    require_all_used,
    require_one_loss_each,
    require_separate_rows,
)

MOST_CANCELLING = 16.0
MOST_TIMES = 1024  # a layer may see a row
ADDED_AT_ONCE = 4096  # rows × times in one product, which bounds its rounding

Pass = tuple[nn.Linear, Tensor, Tensor]  # a layer, its input [rows, …, in], its output [rows, …, out]


class Workspace:
    """Memory for float64 copies, kept from step to step: fresh pages cost more than the arithmetic on them."""

    def __init__(self) -> None:
        self._kept: dict[tuple[nn.Linear, str], Tensor] = {}

    def stacked(self, layer: nn.Linear, what: str, passes: Sequence[Tensor]) -> Tensor:
        """Passes of shape [rows, …, width] as one [rows, time, width]; valid until it is asked for again."""
        rows, width = len(passes[0]), passes[0].shape[-1]
        parts = [part.reshape(rows, -1, width) for part in passes]
        shape = (rows, sum(part.shape[1] for part in parts), width)
        size, kept = math.prod(shape), self._kept.get((layer, what))
        if kept is None or len(kept) < size:
            kept = self._kept[layer, what] = torch.empty(size, dtype=torch.float64, device=passes[0].device)
        whole, start = kept[:size].view(shape), 0
        for part in parts:
            whole[:, start : start + part.shape[1]] = part
            start += part.shape[1]
        return whole


@dataclass
class Bookkeeping:
    """Adds clipped gradients of Linear layers. Norms and sums are float64, so neither can underflow (a float32 squared
    twice is above 10⁻¹⁸⁰) and the sum hardly depends on rounding."""

    layers: list[nn.Linear]
    rows_at_once: int
    times: int = 1  # a layer sees a row, at most; known after the trial
    _workspace: Workspace = field(init=False, repr=False, default_factory=Workspace)

    def try_out(self, loss: PerExampleLoss, rows: Sequence[Tensor]) -> None:
        """Refuse a loss that couples rows, by what a few made-up ones do; the number of passes is public from here."""
        losses, passes = self._forward(loss, rows)
        require_separate_rows(losses, [output for _, _, output in passes], [layer for layer, _, _ in passes])
        self.times = max(_times(passes).values())
        if self.times > MOST_TIMES:
            raise PrivacyError(f"a Linear layer sees a row {self.times} times; {MOST_TIMES} are the most")
        if self.times > 1:
            self.rows_at_once = min(self.rows_at_once, max(64, ADDED_AT_ONCE // self.times // 64 * 64))

    def add(
        self, sums: Sums, loss: PerExampleLoss, rows: Sequence[Tensor], count: int, clip: float, at_once: int
    ) -> Iterator[None]:
        """Add the clipped gradients of the first `count` rows, in clip norms; a stop after each product of `at_once`
        passes."""
        losses, passes = self._forward(loss, rows)
        if max(_times(passes).values()) > self.times:
            raise PrivacyError("a loss must run its layers equally often in every batch")
        outputs = [output for _, _, output in passes]
        slopes = torch.autograd.grad(losses[:count].sum(), outputs, allow_unused=True, materialize_grads=True)
        yield from _add_clipped_products(sums, self._stacked(passes, slopes), clip, at_once)

    def _stacked(self, passes: Sequence[Pass], slopes: Sequence[Tensor]) -> dict[nn.Linear, tuple[Tensor, Tensor]]:
        """By layer, the inputs [rows, time, in] and the slopes [rows, time, out] of all its passes, in float64."""
        seen: dict[nn.Linear, tuple[list[Tensor], list[Tensor]]] = {}
        for (layer, a, _), g in zip(passes, slopes, strict=True):
            inputs, outputs = seen.setdefault(layer, ([], []))
            inputs.append(a)
            outputs.append(g)
        stacked = self._workspace.stacked
        return {layer: (stacked(layer, "a", inputs), stacked(layer, "g", g)) for layer, (inputs, g) in seen.items()}

    def _forward(self, loss: PerExampleLoss, rows: Sequence[Tensor]) -> tuple[Tensor, list[Pass]]:
        """The loss of every row, and what went through every layer on the way."""
        with _recorded(self.layers, len(rows[0])) as passes:
            losses = loss(*rows)
        require_one_loss_each(losses, len(rows[0]))
        require_all_used(self.layers, [layer for layer, _, _ in passes])
        return losses, passes


def _times(passes: Sequence[Pass]) -> dict[nn.Linear, int]:
    """How often each layer saw a row."""
    times: dict[nn.Linear, int] = {}
    for layer, a, _ in passes:
        times[layer] = times.get(layer, 0) + a.shape[1:-1].numel()
    return times


def _add_clipped_products(
    sums: Sums, stacked: Mapping[nn.Linear, tuple[Tensor, Tensor]], l2_clip_norm: float, at_once: int
) -> Iterator[None]:
    """Add Σ_rows c·Σₜ gₜ aₜᵀ to every weight's sum and Σ_rows c·Σₜ gₜ to every bias's, c = min(1 / C, 1 / norm of the
    row), from inputs a [rows, time, in] and slopes g [rows, time, out], which are used up."""
    norms = [_squared_norms(a, g, bias=0.0 if layer.bias is None else 1.0) for layer, (a, g) in stacked.items()]
    squared = torch.stack(norms).sum(0)
    factors = squared.rsqrt().clamp(max=1 / l2_clip_norm)
    finite = squared.isfinite()
    everything = bool(finite.all())
    for layer, (a, g) in stacked.items():
        g.mul_(factors[:, None, None])
        if not everything:  # a row whose gradient has no norm cannot be clipped, so it is left out
            a, g = a[finite], g[finite]
        pieces = (torch.split(tensor.flatten(0, 1), at_once) for tensor in (a, g))
        for part_a, part_g in zip(*pieces, strict=True):
            sums[layer.weight].addmm_(part_g.T, part_a)
            if layer.bias is not None:
                sums[layer.bias].add_(part_g.sum(0))
            yield


def _squared_norms(a: Tensor, g: Tensor, bias: float) -> Tensor:
    """[rows] of ‖Σₜ gₜ aₜᵀ‖² + |Σₜ gₜ|²·bias, or of the least that is taken for it."""
    each: Tensor = torch.linalg.vector_norm(g, dim=2).square() * (torch.linalg.vector_norm(a, dim=2).square() + bias)
    if a.shape[1] == 1:
        return each[:, 0]
    whole = (torch.bmm(g, g.mT) * (torch.bmm(a, a.mT) + bias)).sum((1, 2))
    return torch.maximum(whole, (each.sqrt().sum(1) / MOST_CANCELLING).square())


@contextmanager
def _recorded(layers: Sequence[nn.Linear], count: int) -> Iterator[list[Pass]]:
    """While open, every pass through a layer is made row by row and kept; on leaving, each must be as it was made."""
    passes: list[Pass] = []
    versions: list[tuple[int, int]] = []

    def keep(layer: nn.Linear, a: Tensor) -> Tensor:
        if a.dim() < 2 or len(a) != count:
            raise PrivacyError(
                f"a Linear layer got shape {tuple(a.shape)} for {count} rows; rows must stay apart (no packing)"
            )
        output = linear(a, layer.weight, layer.bias)
        passes.append((layer, a.detach(), output))
        versions.append((a._version, output._version))
        return output

    for layer in layers:
        layer.forward = partial(keep, layer)  # type: ignore[method-assign]
    try:
        yield passes
    finally:
        for layer in layers:
            del layer.forward
    if versions != [(a._version, output._version) for _, a, output in passes]:
        raise PrivacyError("an in-place operation changed a Linear layer's input or output; use inplace=False")
