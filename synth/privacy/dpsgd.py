"""DP-SGD for networks of Linear layers, at little more than the price of SGD.

DP-SGD needs the norm of every row's gradient, not the gradient itself. For a Linear layer the gradient of one row
is the outer product g aᵀ of the gradient g at the layer's output and the layer's input a (and g for the bias), so
its squared norm is |g|² (|a|² + 1). One forward pass keeps the inputs, one backward pass finds the output
gradients, and the clipped sum is one matrix product per layer, (c·g)ᵀ a ("book-keeping", Bu et al., arXiv
2210.00038). Opacus' hooks, which do make per-row gradients, are the reference in the tests; the decision record
`dpsgd-bookkeeping` has the reasons and the figures.

What makes it private is in one place, `PrivateGradient.__call__`. The clipped sum is rounded to a lattice of 2⁻²⁴ clip
norms, integer noise is added that is exactly a rounded Gaussian, and the divisor is public. For an integer S and a
Gaussian N, round(S + N) = S + round(N): what leaves is the Gaussian mechanism on the lattice sum, rounded afterwards,
so its event holds to the last bit. `lattice_sensitivity` bounds what one row does to that sum, rounding and
floating-point error included. An empty batch adds nothing; the noise is still there.
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
from synth.privacy.row_by_row import linear
from synth.privacy.supported import Passes, made_up_rows, require_linear_layers, require_separate_rows

LATTICE = 2.0**24  # lattice steps in one clip norm
FLOAT_ERROR = 2.0**-14  # see lattice_sensitivity
LARGE_BATCH = 1 << 24  # rows; a larger one is summed in pieces of PADDED_ROWS, or that error would outgrow its bound
MOST_NOISE_MULTIPLIER = 2.0**15  # of what the noise source can round
PADDED_ROWS = 64  # a network sees a multiple of so many rows

PerExampleLoss = Callable[..., Tensor]


@dataclass(frozen=True)
class StepPrivacy:
    """What one step does to private rows; public, and exactly what its event says."""

    l2_clip_norm: float
    noise_multiplier: float  # standard deviation of the noise / what one row can do to the sum
    sample_rate: float  # probability with which each row joins a step
    expected_batch: float  # rows: sample_rate × the declared row count, never the true one

    def __post_init__(self) -> None:
        self.event(steps=1)
        for name in ("l2_clip_norm", "expected_batch"):
            if not 0 < getattr(self, name) < math.inf:
                raise PrivacyError(f"{name} must be a finite number above 0, got {getattr(self, name)}")
        if self.noise_multiplier > MOST_NOISE_MULTIPLIER:
            raise PrivacyError(f"noise_multiplier must be at most {MOST_NOISE_MULTIPLIER:g}; raise ε or sample less")

    def event(self, steps: int) -> SampledGaussian:
        return SampledGaussian(self.sample_rate, self.noise_multiplier, steps)


def poisson_batch(source: NoiseSource, rows: int, sample_rate: float) -> NDArray[np.int64]:
    """Indices of the rows that join this step, each by its own coin; may be empty."""
    return np.flatnonzero(source.poisson_sample(rows, sample_rate)).astype(np.int64)


def lattice_sensitivity(parameters: int) -> float:
    """How far one row can move the sum of clipped gradients once it is rounded to the lattice (L2, lattice steps).

    In exact arithmetic one clip norm, LATTICE steps. What a computer adds to it, in units u = 2⁻⁵³:
    - a row's norm and its clipped products err by at most (inputs + 10) u, below 2⁻³⁰ for a million inputs;
    - a sum over n rows in pieces of m, the pieces added without loss (`_Total`), errs by at most (m + 3) u of the sum
      of all norms, n. Both tables' sums do: 2 · (2¹² + 3) · 2²⁴ u < 1.001 · 2⁻¹⁶ clip norms for n ≤ 2²⁴ and m = 2¹²,
      less than 1.05 · 2⁻¹⁵ for n ≤ 2³¹, more rows than any table in memory has, and m = 2⁶.
    FLOAT_ERROR = 2⁻¹⁴ is more than both. Rounding moves each of d coordinates by at most ½ on either table: √d.
    No other row's gradient moves at all (see `row_by_row`).
    """
    return LATTICE * (1 + FLOAT_ERROR) + math.sqrt(parameters)


@dataclass
class ClippedSum:
    """Σ over rows of each row's gradient, clipped, in clip norms. Without noise: alone it protects nobody.

    Layers run in float32; norms and sums are float64, so neither can underflow (a float32 squared twice is above
    10⁻¹⁸⁰) and the sum hardly depends on rounding. A batch of more than `micro_batch_rows` is worked off in pieces:
    bounded memory. A row's own gradient must not depend, in a single bit, on where it stands or on how many others
    there are: layers run row by row (see `row_by_row`), and pieces are filled up with rows of zeros, which add nothing,
    so that functions like softplus never take the path that libraries keep for the last few elements.
    """

    module: nn.Module
    l2_clip_norm: float
    micro_batch_rows: int = 4096
    _layers: list[nn.Linear] = field(init=False, repr=False)
    _rows_are_separate: bool = field(init=False, repr=False, default=False)

    def __post_init__(self) -> None:
        self._layers = require_linear_layers(self.module)
        if not 1 <= self.micro_batch_rows <= 4096:
            raise PrivacyError(f"micro_batch_rows must lie between 1 and 4096, got {self.micro_batch_rows}")

    @property
    def parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.module.parameters())

    def __call__(self, per_example_loss: PerExampleLoss, *batch: Tensor) -> Tensor:
        """[parameters], flat, in the module's order.

        `per_example_loss(*batch)` runs the module once and returns one loss per row, a function of that row alone;
        the rows are the first dimension of every tensor of the batch, and nothing else varies by row.
        """
        if not self._rows_are_separate:
            require_separate_rows(*self._forward(per_example_loss, made_up_rows(batch)))
            self._rows_are_separate = True
        count, total = len(batch[0]), _Total.zero(self.parameters)
        at_once = self.micro_batch_rows if count <= LARGE_BATCH else PADDED_ROWS
        for start in range(0, count, at_once):
            rows = [tensor[start : start + at_once] for tensor in batch]
            losses, passes = self._forward(per_example_loss, [_padded(tensor) for tensor in rows])
            slopes = torch.autograd.grad(losses[: len(rows[0])].sum(), [output for _, _, output in passes])
            piece = torch.zeros(self.parameters, dtype=torch.float64)
            sums: dict[Tensor, Tensor] = dict(zip(self.module.parameters(), self.by_parameter(piece), strict=True))
            _add_clipped_products(sums, passes, slopes, self.l2_clip_norm)
            total.add(piece)
        return total.value

    def by_parameter(self, flat: Tensor) -> list[Tensor]:
        """Views of a flat tensor, one for each parameter."""
        parameters = list(self.module.parameters())
        pieces = torch.split(flat, [parameter.numel() for parameter in parameters])
        return [piece.view_as(parameter) for piece, parameter in zip(pieces, parameters, strict=True)]

    def _forward(self, per_example_loss: PerExampleLoss, rows: Sequence[Tensor]) -> tuple[Tensor, Passes]:
        """The loss of every row, and what went through every layer on the way."""
        count = len(rows[0])
        with _recorded(self._layers, count) as passes:
            losses = per_example_loss(*rows)
        if losses.shape != (count,):
            raise PrivacyError(f"expected one loss per row, shape ({count},), got {tuple(losses.shape)}")
        if len(passes) != len(self._layers):
            raise PrivacyError(f"the loss used {len(passes)} of {len(self._layers)} Linear layers; each must run once")
        return losses, passes


@dataclass
class PrivateGradient:
    """The noisy gradient of a module's loss over private rows. Bound, and the module checked, once per run."""

    module: nn.Module
    privacy: StepPrivacy
    source: NoiseSource
    micro_batch_rows: int = 4096
    _clipped: ClippedSum = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._clipped = ClippedSum(self.module, self.privacy.l2_clip_norm, self.micro_batch_rows)

    def __call__(self, per_example_loss: PerExampleLoss, *batch: Tensor) -> list[Tensor]:
        """(Σ clipped gradients + noise) / expected_batch, one tensor per parameter, in the module's order.

        For losses see `ClippedSum`. A gradient that depends on no private row is added to the result by the caller.
        """
        total = self._clipped(per_example_loss, *batch)
        on_lattice = np.rint(LATTICE * total.numpy()).astype(np.int64)
        deviation = self.privacy.noise_multiplier * lattice_sensitivity(len(on_lattice))
        released = self.source.rounded_gaussian(deviation, len(on_lattice)) + on_lattice
        scale = self.privacy.l2_clip_norm / LATTICE / self.privacy.expected_batch
        return self._clipped.by_parameter(torch.from_numpy((scale * released).astype(np.float32)))


@dataclass
class _Total:
    """A sum that carries along what each addition rounds off (Knuth's TwoSum)."""

    rounded: Tensor
    lost: Tensor

    @classmethod
    def zero(cls, size: int) -> "_Total":
        return cls(torch.zeros(size, dtype=torch.float64), torch.zeros(size, dtype=torch.float64))

    @property
    def value(self) -> Tensor:
        return self.rounded + self.lost

    def add(self, piece: Tensor) -> None:
        after = self.rounded + piece
        taken = after - self.rounded
        self.lost += (self.rounded - (after - taken)) + (piece - taken)
        self.rounded = after


def _padded(rows: Tensor) -> Tensor:
    missing = -len(rows) % PADDED_ROWS
    return torch.cat([rows, rows.new_zeros(missing, *rows.shape[1:])]) if missing else rows


def _add_clipped_products(
    sums: dict[Tensor, Tensor], passes: Passes, slopes: Sequence[Tensor], l2_clip_norm: float
) -> None:
    """Add Σ_rows c·(g aᵀ) to every weight's sum and Σ_rows c·g to every bias's, c = min(1 / C, 1 / norm of the row)."""
    squared = torch.zeros(len(slopes[0]), dtype=torch.float64)
    doubled = [(layer, a.double(), g.double()) for (layer, a, _), g in zip(passes, slopes, strict=True)]
    for layer, a, g in doubled:
        has_bias = 1.0 if layer.bias is not None else 0.0
        squared += _squared_norms(g) * (_squared_norms(a) + has_bias)
    factors = squared.rsqrt().clamp(max=1 / l2_clip_norm)
    finite = squared.isfinite()
    everything = bool(finite.all())
    for layer, a, g in doubled:
        clipped = g.mul_(factors[:, None])
        if not everything:  # a row whose gradient has no norm cannot be clipped, so it is left out
            clipped, a = clipped[finite], a[finite]
        sums[layer.weight].addmm_(clipped.T, a)
        if layer.bias is not None:
            sums[layer.bias].add_(clipped.sum(0))


def _squared_norms(rows: Tensor) -> Tensor:
    norms: Tensor = torch.linalg.vector_norm(rows, dim=1)
    return norms.square()


@contextmanager
def _recorded(layers: Sequence[nn.Linear], count: int) -> Iterator[Passes]:
    """While open, every pass through a layer is made row by row and kept; on leaving, each must be as it was made."""
    passes: Passes = []
    versions: list[tuple[int, int]] = []

    def keep(layer: nn.Linear, args: tuple[Tensor, ...], _: Tensor) -> Tensor:
        (a,) = args
        if a.shape != (count, layer.in_features):
            raise PrivacyError(
                f"a Linear layer got shape {tuple(a.shape)} for {count} rows; rows must stay apart (no packing)"
            )
        if any(layer is seen for seen, _, _ in passes):
            raise PrivacyError("a Linear layer ran twice in one loss; its gradient norm would be wrong")
        output = linear(a, layer.weight, layer.bias)
        passes.append((layer, a.detach(), output))
        versions.append((a._version, output._version))
        return output

    handles = [layer.register_forward_hook(keep) for layer in layers]
    try:
        yield passes
    finally:
        for handle in handles:
            handle.remove()
    if versions != [(a._version, output._version) for _, a, output in passes]:
        raise PrivacyError("an in-place operation changed a Linear layer's input or output; use inplace=False")
