"""DP-SGD for networks of Linear layers, at little more than the price of SGD.

DP-SGD needs the norm of every row's gradient, not the gradient itself. For a Linear layer the gradient of one row
is the outer product g aᵀ of the gradient g at the layer's output and the layer's input a (and g for the bias), so
its squared norm is |g|² (|a|² + 1). One forward pass keeps the inputs, one backward pass finds the output
gradients, and the clipped sum is one matrix product per layer, (c·g)ᵀ a ("book-keeping", Bu et al., arXiv
2210.00038). Opacus' hooks, which do make per-row gradients, are the reference in the tests; the decision record
`dpsgd-bookkeeping` has the reasons and the figures.

What makes it private is in one place, `PrivateGradient.__call__`: the result starts as noise, each row adds at
most `l2_clip_norm` to it, and the divisor is public. An empty batch adds nothing; the noise is still there.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from synth.errors import PrivacyError
from synth.privacy.events import SampledGaussian
from synth.privacy.noise import NoiseSource
from synth.privacy.supported import Passes, made_up_rows, require_linear_layers, require_separate_rows


@dataclass(frozen=True)
class StepPrivacy:
    """What one step does to private rows; public, and exactly what its event says."""

    l2_clip_norm: float
    noise_multiplier: float  # standard deviation of the noise / l2_clip_norm
    sample_rate: float  # probability with which each row joins a step
    expected_batch: float  # rows: sample_rate × the declared row count, never the true one

    def __post_init__(self) -> None:
        self.event(steps=1)
        for name in ("l2_clip_norm", "expected_batch"):
            if not 0 < getattr(self, name) < math.inf:
                raise PrivacyError(f"{name} must be a finite number above 0, got {getattr(self, name)}")

    def event(self, steps: int) -> SampledGaussian:
        return SampledGaussian(self.sample_rate, self.noise_multiplier, steps)


def poisson_batch(source: NoiseSource, rows: int, sample_rate: float) -> NDArray[np.int64]:
    """Indices of the rows that join this step, each by its own coin; may be empty."""
    return np.flatnonzero(source.poisson_sample(rows, sample_rate)).astype(np.int64)


@dataclass
class PrivateGradient:
    """The noisy gradient of a module's loss over private rows. Bound, and the module checked, once per run.

    A batch of more than `micro_batch_rows` is worked off in pieces: same result, bounded memory.
    """

    module: nn.Module
    privacy: StepPrivacy
    source: NoiseSource
    micro_batch_rows: int = 4096
    _layers: list[nn.Linear] = field(init=False, repr=False)
    _rows_are_separate: bool = field(init=False, repr=False, default=False)

    def __post_init__(self) -> None:
        self._layers = require_linear_layers(self.module)
        if self.micro_batch_rows < 1:
            raise PrivacyError(f"micro_batch_rows must be at least 1, got {self.micro_batch_rows}")

    def __call__(self, per_example_loss: Callable[..., Tensor], *batch: Tensor) -> list[Tensor]:
        """(Σ clipped gradients + noise) / expected_batch, one tensor per parameter, in the module's order.

        `per_example_loss(*batch)` runs the module once and returns one loss per row, a function of that row alone;
        the rows are the first dimension of every tensor of the batch, and nothing else varies by row. A gradient
        that depends on no private row is added to the result by the caller.
        """
        if not self._rows_are_separate:
            require_separate_rows(*self._forward(per_example_loss, made_up_rows(batch)))
            self._rows_are_separate = True
        privacy = self.privacy
        gradients = self._noise(privacy.noise_multiplier * privacy.l2_clip_norm)
        for start in range(0, len(batch[0]), self.micro_batch_rows):
            rows = [tensor[start : start + self.micro_batch_rows] for tensor in batch]
            losses, passes = self._forward(per_example_loss, rows)
            slopes = torch.autograd.grad(losses.sum(), [output for _, _, output in passes])
            _add_clipped_products(gradients, passes, slopes, privacy.l2_clip_norm)
        for gradient in gradients.values():
            gradient.div_(privacy.expected_batch)
        return list(gradients.values())

    def _noise(self, standard_deviation: float) -> dict[Tensor, Tensor]:
        """Fresh noise in the shape of every parameter, drawn as one flat buffer."""
        parameters = list(self.module.parameters())
        sizes = [parameter.numel() for parameter in parameters]
        values = torch.from_numpy(self.source.normal(sum(sizes))).mul_(standard_deviation)
        pieces = torch.split(values.to(parameters[0].device), sizes)
        return {p: piece.view_as(p) for p, piece in zip(parameters, pieces, strict=True)}

    def _forward(self, per_example_loss: Callable[..., Tensor], rows: Sequence[Tensor]) -> tuple[Tensor, Passes]:
        """The loss of every row, and what went through every layer on the way."""
        count = len(rows[0])
        with _recorded(self._layers, count) as passes:
            losses = per_example_loss(*rows)
        if losses.shape != (count,):
            raise PrivacyError(f"expected one loss per row, shape ({count},), got {tuple(losses.shape)}")
        if len(passes) != len(self._layers):
            raise PrivacyError(f"the loss used {len(passes)} of {len(self._layers)} Linear layers; each must run once")
        return losses, passes


def _add_clipped_products(
    sums: dict[Tensor, Tensor], passes: Passes, slopes: Sequence[Tensor], l2_clip_norm: float
) -> None:
    """Add Σ_rows c·(g aᵀ) to every weight's sum and Σ_rows c·g to every bias's, c = min(1, C / norm of the row)."""
    squared = torch.zeros(len(slopes[0]), device=slopes[0].device)
    for (layer, a, _), g in zip(passes, slopes, strict=True):
        has_bias = 1.0 if layer.bias is not None else 0.0
        squared += _squared_norms(g) * (_squared_norms(a) + has_bias)
    factors = (l2_clip_norm / (squared.sqrt() + 1e-6)).clamp(max=1.0)  # the same guard as Opacus
    finite = squared.isfinite()
    everything = bool(finite.all())
    for (layer, a, _), g in zip(passes, slopes, strict=True):
        clipped = g * factors[:, None]
        if not everything:  # a row whose gradient has no norm cannot be clipped, so it is left out
            clipped, a = clipped[finite], a[finite]
        sums[layer.weight].addmm_(clipped.T, a)
        if layer.bias is not None:
            sums[layer.bias].add_(clipped.sum(0))


def _squared_norms(rows: Tensor) -> Tensor:
    return rows.square().sum(1)


@contextmanager
def _recorded(layers: Sequence[nn.Linear], count: int) -> Iterator[Passes]:
    """While open, every pass through a layer is kept; on leaving, each must be as the layer made it."""
    passes: Passes = []
    versions: list[tuple[int, int]] = []

    def keep(layer: nn.Linear, args: tuple[Tensor, ...], output: Tensor) -> None:
        (a,) = args
        if a.shape != (count, layer.in_features):
            raise PrivacyError(
                f"a Linear layer got shape {tuple(a.shape)} for {count} rows; rows must stay apart (no packing)"
            )
        if any(layer is seen for seen, _, _ in passes):
            raise PrivacyError("a Linear layer ran twice in one loss; its gradient norm would be wrong")
        passes.append((layer, a.detach(), output))
        versions.append((a._version, output._version))

    handles = [layer.register_forward_hook(keep) for layer in layers]
    try:
        yield passes
    finally:
        for handle in handles:
            handle.remove()
    if versions != [(a._version, output._version) for _, a, output in passes]:
        raise PrivacyError("an in-place operation changed a Linear layer's input or output; use inplace=False")
