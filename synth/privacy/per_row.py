"""Clipped sums for layers that book-keeping cannot do (LayerNorm, embeddings, convolutions, recurrent layers): Opacus
makes every row's gradient, and here it is clipped in float64 and added.

Of Opacus this takes its hooks (GradSampleModule) and nothing else: clipping, noise and events are the same as for
Linear layers. Its hooks pair the passes of a layer with their slopes by the order of the backward pass, and take the
first dimension for the rows; whether that is right for a network is tried on made-up rows, whose gradients must be
those that autograd finds for one loss at a time.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from opacus.grad_sample import GradSampleModule
from torch import Tensor, nn

from synth.errors import PrivacyError
from synth.privacy.steady import steady
from synth.privacy.supported import (
    PerExampleLoss,
    Sums,
    require_all_used,
    require_one_loss_each,
    require_separate_rows,
)

LARGEST_PIECE = 1 << 24  # numbers in the gradients of the rows that are worked off together
TOLERANCE = 1e-4  # of a made-up row's gradient


@dataclass
class PerRowGradients:
    """Adds clipped gradients of any known layers, from one gradient a row."""

    module: nn.Module
    layers: list[nn.Module]
    rows_at_once: int
    times: int = 1  # whatever a layer sees of a row is one gradient
    _parameters: list[nn.Parameter] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._parameters = list(self.module.parameters())
        size = sum(parameter.numel() for parameter in self._parameters)
        self.rows_at_once = min(self.rows_at_once, max(64, LARGEST_PIECE // size // 64 * 64))

    def try_out(self, loss: PerExampleLoss, rows: Sequence[Tensor]) -> None:
        """Refuse a loss that couples rows or confuses the hooks, by what a few made-up ones do."""
        outputs: list[Tensor] = []
        used: list[nn.Module] = []

        def keep(layer: nn.Module, _: object, output: Tensor) -> None:
            if len(output) != len(rows[0]):
                raise PrivacyError(f"a layer made {len(output)} outputs of {len(rows[0])} rows; no packing")
            outputs.append(output)
            used.append(layer)

        handles = [layer.register_forward_hook(keep) for layer in self.layers]
        try:
            with _hooked(self.module) as hooks:
                losses = loss(*rows)
                require_one_loss_each(losses, len(rows[0]))
                require_all_used(self.layers, used)
                hooks.disable_hooks()
                require_separate_rows(losses, outputs, used)
                expected = [torch.autograd.grad(each, self._parameters, retain_graph=True) for each in losses]
                hooks.enable_hooks()
                found = self._gradients(losses.sum())
        finally:
            for handle in handles:
                handle.remove()
        for row, slopes in enumerate(expected):
            wanted, got = _flat(slopes), _flat([gradient[row] for gradient in found])
            if not float((got - wanted).norm()) <= TOLERANCE * max(float(wanted.norm()), TOLERANCE):
                raise PrivacyError("Opacus' gradients of single rows are not autograd's for this network; rearrange it")

    def add(
        self, sums: Sums, loss: PerExampleLoss, rows: Sequence[Tensor], count: int, clip: float, at_once: int
    ) -> Iterator[None]:
        """Add the clipped gradients of the first `count` rows, in clip norms, in one product."""
        with steady(self.module), _hooked(self.module):
            losses = loss(*rows)
            require_one_loss_each(losses, len(rows[0]))
            gradients = [gradient[:count].flatten(1) for gradient in self._gradients(losses[:count].sum())]
        _add_clipped(sums, self._parameters, gradients, clip)
        yield

    def _gradients(self, loss: Tensor) -> list[Tensor]:
        """[rows, …] by parameter."""
        for parameter in self._parameters:
            parameter.grad = None
        loss.backward()  # type: ignore[no-untyped-call]
        found = [getattr(parameter, "grad_sample", None) for parameter in self._parameters]
        for parameter in self._parameters:
            parameter.grad = None
        gradients = [each for each in found if isinstance(each, Tensor)]
        if len(gradients) < len(self._parameters):
            raise PrivacyError("a pass through a layer does not reach the loss, or the module is not in training mode")
        return gradients


def _add_clipped(
    sums: Sums, parameters: Sequence[nn.Parameter], gradients: Sequence[Tensor], l2_clip_norm: float
) -> None:
    """Add Σ_rows c·gradient, c = min(1 / C, 1 / norm of the row), from gradients of shape [rows, ·]."""
    squared = gradients[0].new_zeros(len(gradients[0]), dtype=torch.float64)
    for gradient in gradients:
        squared += torch.linalg.vector_norm(gradient, dim=1, dtype=torch.float64).square()
    finite = squared.isfinite()  # a row whose gradient has no norm cannot be clipped, so it is left out
    factors = squared[finite].rsqrt().clamp(max=1 / l2_clip_norm)
    for parameter, gradient in zip(parameters, gradients, strict=True):
        sums[parameter].add_((factors @ gradient[finite].double()).view_as(parameter))


def _flat(parts: Sequence[Tensor]) -> Tensor:
    return torch.cat([part.flatten() for part in parts]).double()


@contextmanager
def _hooked(module: nn.Module) -> Iterator[GradSampleModule]:
    """With Opacus' hooks, of which nothing is left on leaving."""
    hooks = GradSampleModule(module, loss_reduction="sum")
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Full backward hook is firing")  # the first layer's, as intended
            yield hooks
    finally:
        hooks.cleanup()
        for part in module.modules():
            for leftover in ("activations", "max_batch_len"):
                vars(part).pop(leftover, None)
