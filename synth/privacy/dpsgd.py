"""DP-SGD: the noisy sum of clipped gradients, in lattice steps.

Two engines find the clipped sum, and the module says which: `bookkeeping` for networks whose parameters are all in
Linear layers, at little more than the price of SGD, and `per_row`, which is Opacus' hooks, for all others. Opacus and
autograd are the reference of both in the tests; the decision record `dpsgd-bookkeeping` has the reasons and the
figures.

What makes it private is in one place, `NoisySum.noisy_sum`. The clipped sum is rounded to a lattice of 2⁻²⁴ clip
norms, integer noise is added that is exactly a rounded Gaussian, and the divisor is public. For an integer S and a
Gaussian N, round(S + N) = S + round(N): what leaves is the Gaussian mechanism on the lattice sum, rounded afterwards,
so its event holds to the last bit. Where parties share the noise, each adds a rounded Gaussian of its share and only
the sum of all is opened (see `shared_gaussian`). `lattice_sensitivity` bounds what one row does to that sum, rounding
and floating-point error included. An empty batch adds nothing; the noise is still there.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from synth.errors import PrivacyError
from synth.privacy.bookkeeping import ADDED_AT_ONCE, Bookkeeping
from synth.privacy.events import SampledGaussian, SharedGaussian
from synth.privacy.noise import NoiseSource
from synth.privacy.per_row import PerRowGradients
from synth.privacy.shared_gaussian import share_deviation
from synth.privacy.steady import PADDED_ROWS, padded
from synth.privacy.supported import PerExampleLoss, Sums, made_up_rows, require_known_layers

COINS_AT_ONCE = 1 << 22  # rows
LATTICE = 2.0**24  # lattice steps in one clip norm
FLOAT_ERROR = 2.0**-14  # see lattice_sensitivity
LARGE_BATCH = 1 << 24  # rows; a larger one is summed in pieces of PADDED_ROWS, or that error would outgrow its bound
LARGE_BATCH_SEEN_AGAIN = 1 << 21  # rows, where layers see a row more than once; then in products of PADDED_ROWS passes
LARGEST_SUM = 2.0**52  # lattice steps: room in a secure sum for 2^28 rows that agree; beyond it a coordinate is cut
MOST_NOISE_MULTIPLIER = 2.0**15  # of what the noise source can round


@dataclass(frozen=True)
class StepPrivacy:
    """What one step does to private rows; public, and exactly what its event says."""

    l2_clip_norm: float
    noise_multiplier: float  # standard deviation of the noise / what one row can do to the sum
    sample_rate: float  # probability with which each row joins a step
    expected_batch: float  # rows: sample_rate × the declared row count, never the true one
    shares: int = 1  # honest parties that make the noise between them; 1: this party makes all of it

    def __post_init__(self) -> None:
        self.event(steps=1)
        for name in ("l2_clip_norm", "expected_batch"):
            if not 0 < getattr(self, name) < math.inf:
                raise PrivacyError(f"{name} must be a finite number above 0, got {getattr(self, name)}")
        if self.noise_multiplier > MOST_NOISE_MULTIPLIER:
            raise PrivacyError(f"noise_multiplier must be at most {MOST_NOISE_MULTIPLIER:g}; raise ε or sample less")

    def event(self, steps: int) -> SampledGaussian:
        if self.shares > 1:
            return SharedGaussian(self.sample_rate, self.noise_multiplier, steps, self.shares)
        return SampledGaussian(self.sample_rate, self.noise_multiplier, steps)

    @property
    def lattice_step(self) -> float:
        """In units of the gradient."""
        return self.l2_clip_norm / LATTICE


def poisson_batch(source: NoiseSource, rows: int, sample_rate: float) -> NDArray[np.int64]:
    """Indices of the rows that join this step, each by its own coin; may be empty."""
    joined = [
        start + np.flatnonzero(source.poisson_sample(min(COINS_AT_ONCE, rows - start), sample_rate))
        for start in range(0, max(rows, 1), COINS_AT_ONCE)
    ]
    return np.concatenate(joined).astype(np.int64)


def lattice_sensitivity(parameters: int) -> float:
    """How far one row can move the sum of clipped gradients once it is rounded to the lattice (L2, lattice steps).

    In exact arithmetic one clip norm, LATTICE steps. What a computer adds to it, in units u = 2⁻⁵³:
    - a row's norm and its clipped products err by at most (inputs + 10) u, below 2⁻³⁰ for a million inputs;
    - a sum over n rows in pieces of m, the pieces added without loss (`added`), errs by at most (m + 3) u of the sum
      of all norms, n. Both tables' sums do: 2 · (2¹² + 3) · 2²⁴ u < 1.001 · 2⁻¹⁶ clip norms for n ≤ 2²⁴ and m = 2¹²,
      less than 1.05 · 2⁻¹⁵ for n ≤ 2³¹, more rows than any table in memory has, and m = 2⁶.
    Where layers see a row several times, its gradient is a sum over t ≤ 2¹⁰ passes that may cancel. Let B be the square
    of the sum of the passes' norms, K = MOST_CANCELLING = 2⁴:
    - the Gram formula errs by at most (t² + inputs + outputs + 3) u B. The row's squared norm is taken for no less than
      B / K², so what is taken is too small by a share of (2²¹ + 3) K² u < 2⁻²³ at most;
    - for the same reason the norms of a row's clipped passes add up to at most K clip norms. A piece is at most 2⁴
      products of 2¹² passes, so for n ≤ 2²¹ rows both tables' sums err by less than 2 · (2¹² + 2⁴ + 3) · 2²¹ K u
      < 1.01 · 2⁻¹⁵. Larger batches are added up in products of 2⁶ passes, each without loss: 2 · (2⁶ + 3) · n K u
      < 1.1 · 2⁻¹⁶ for n ≤ 2²⁶ rows in a batch, a step that would take hours. No batch is refused for its size.
    FLOAT_ERROR = 2⁻¹⁴ is more than all of it in either case. Rounding moves each of d coordinates by at most ½ on
    either table: √d. No other row's gradient moves at all (see `row_by_row`).
    """
    return LATTICE * (1 + FLOAT_ERROR) + math.sqrt(parameters)


@dataclass
class ClippedSum:
    """Σ over rows of each row's gradient, clipped, in clip norms. Without noise: alone it protects nobody.

    Layers run in float32; norms and sums are float64. A batch of more than `micro_batch_rows` is worked off in pieces:
    bounded memory. A row's own gradient must not depend, in a single bit, on where it stands or on how many others
    there are: Linear layers run row by row (see `row_by_row`), and pieces are filled up with rows of zeros, which add
    nothing, so that functions like softplus never take the path that libraries keep for the last few elements.
    """

    module: nn.Module
    l2_clip_norm: float
    micro_batch_rows: int = 4096
    _engine: Bookkeeping | PerRowGradients = field(init=False, repr=False)
    _tried: bool = field(init=False, repr=False, default=False)

    def __post_init__(self) -> None:
        layers = require_known_layers(self.module)
        if not 1 <= self.micro_batch_rows <= 4096:
            raise PrivacyError(f"micro_batch_rows must lie between 1 and 4096, got {self.micro_batch_rows}")
        linear = [layer for layer in layers if type(layer) is nn.Linear]
        if len(linear) == len(layers):
            self._engine = Bookkeeping(linear, self.micro_batch_rows)
        else:
            self._engine = PerRowGradients(self.module, layers, self.micro_batch_rows)

    @property
    def parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.module.parameters())

    @property
    def device(self) -> torch.device:
        return next(self.module.parameters()).device

    def _nothing(self) -> Tensor:
        return torch.zeros(self.parameters, dtype=torch.float64, device=self.device)

    def __call__(self, per_example_loss: PerExampleLoss, *batch: Tensor) -> Tensor:
        """[parameters], flat, in the module's order.

        `per_example_loss(*batch)` runs the module's layers, as often as it likes but equally often in every batch, and
        returns one loss per row, a function of that row alone; the rows are the first dimension of every tensor of the
        batch and of what the layers see, and nothing else varies by row.
        """
        engine = self._engine
        if not self._tried:
            engine.try_out(per_example_loss, made_up_rows(batch))
            self._tried = True
        count = len(batch[0])
        again = engine.times > 1 and count > LARGE_BATCH_SEEN_AGAIN
        at_once = PADDED_ROWS if again or count > LARGE_BATCH else engine.rows_at_once
        parts = ([tensor[start : start + at_once] for tensor in batch] for start in range(0, count, at_once))
        pieces = (piece for rows in parts for piece in self._pieces(per_example_loss, rows, at_once, again))
        return added(pieces, self._nothing())

    def _pieces(
        self, per_example_loss: PerExampleLoss, rows: Sequence[Tensor], at_once: int, apart: bool
    ) -> Iterator[Tensor]:
        """The sum over these rows; `apart`: every small product of it by itself."""
        piece = self._nothing()
        sums: Sums = dict(zip(self.module.parameters(), self.by_parameter(piece), strict=True))
        filled, products = [padded(tensor, at_once) for tensor in rows], PADDED_ROWS if apart else ADDED_AT_ONCE
        for _ in self._engine.add(sums, per_example_loss, filled, len(rows[0]), self.l2_clip_norm, products):
            if apart:
                yield piece.clone()
                piece.zero_()
        if not apart:
            yield piece

    def by_parameter(self, flat: Tensor) -> list[Tensor]:
        """Views of a flat tensor, one for each parameter."""
        parameters = list(self.module.parameters())
        pieces = torch.split(flat, [parameter.numel() for parameter in parameters])
        return [piece.view_as(parameter) for piece, parameter in zip(pieces, parameters, strict=True)]


class NoisySum(ABC):
    """A sum over private rows of vectors of bounded length, and this party's share of the noise."""

    privacy: StepPrivacy
    source: NoiseSource

    @abstractmethod
    def clipped(self, what: Any, *batch: Any) -> Tensor:
        """Σ over the rows of the batch of each row's vector, clipped, in clip norms; flat, without noise."""

    def noisy_sum(self, what: Any, *batch: Any) -> NDArray[np.int64]:
        """The clipped sum + this party's share of the noise, flat, in lattice steps. Where the noise is shared, only
        the sum over the parties is private. Cutting a coordinate moves neighbours no further apart."""
        total = self.clipped(what, *batch)
        on_lattice = total.mul_(LATTICE).round_().clamp_(-LARGEST_SUM, LARGEST_SUM).long().cpu().numpy()
        deviation = self.privacy.noise_multiplier * lattice_sensitivity(len(on_lattice))
        share = share_deviation(deviation, self.privacy.shares)
        released: NDArray[np.int64] = self.source.rounded_gaussian(share, len(on_lattice)) + on_lattice
        return released


@dataclass
class PrivateGradient(NoisySum):
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
        scale = self.privacy.lattice_step / self.privacy.expected_batch
        released = scale * self.noisy_sum(per_example_loss, *batch)
        there = torch.from_numpy(released.astype(np.float32)).to(self._clipped.device)
        return self._clipped.by_parameter(there)

    def clipped(self, what: PerExampleLoss, *batch: Tensor) -> Tensor:
        return self._clipped(what, *batch)


def added(pieces: Iterator[Tensor], nothing: Tensor) -> Tensor:
    """A sum that carries along what each addition rounds off (Knuth's TwoSum)."""
    rounded, lost = next(pieces, nothing), nothing
    for piece in pieces:
        after = rounded + piece
        taken = after - rounded
        lost = lost + (rounded - (after - taken)) + (piece - taken)
        rounded = after
    return rounded if lost is nothing else rounded + lost
