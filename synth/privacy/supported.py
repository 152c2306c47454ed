"""Which networks DP-SGD may train here.

Clipping bounds what one row does to the gradient only if the gradient of a row's loss depends on that row alone and
its norm is computed right. Both fail silently: batch statistics and packing couple rows, a shared weight adds two
gradients under one norm. So what is not known to be safe is refused: by structure when training starts, and by the
gradients of a few made-up rows before the first batch. Made-up, because refusing to answer must not depend on data.
"""

from collections.abc import Sequence

import torch
from opacus.validators import ModuleValidator
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from synth.errors import PrivacyError

Passes = list[tuple[nn.Linear, Tensor, Tensor]]  # layer, its input [rows, in], its output [rows, out]


def require_linear_layers(module: nn.Module) -> list[nn.Linear]:
    """The module's Linear layers, if everything it learns is in them and nothing mixes rows."""
    if problems := ModuleValidator.validate(module):
        raise PrivacyError("Opacus refuses this network: " + "; ".join(str(problem) for problem in problems))
    layers = []
    for name, part in module.named_modules():
        if type(part) is nn.Linear:
            layers.append(part)
        elif isinstance(part, _BatchNorm) or list(part.parameters(recurse=False)) or list(part.buffers(False)):
            raise PrivacyError(
                f"'{name or type(part).__name__}' ({type(part).__name__}) is not a Linear layer; under DP every "
                "parameter must be in one, and no layer may keep statistics of the batch"
            )
    parameters = [parameter for layer in layers for parameter in layer.parameters()]
    if not parameters or len(parameters) != len(set(parameters)):
        raise PrivacyError("DP-SGD needs Linear layers, each with weights of its own")
    if any(not parameter.requires_grad or parameter.dtype != torch.float32 for parameter in parameters):
        raise PrivacyError("DP-SGD trains every parameter in float32; freeze or convert nothing")
    return layers


def made_up_rows(batch: Sequence[Tensor]) -> list[Tensor]:
    """Eight rows in the shape of the batch's, normal where they are real numbers and 0 where they are not; always the
    same ones."""
    generator = torch.Generator().manual_seed(0)
    rows = [torch.zeros(8, *tensor.shape[1:], dtype=tensor.dtype) for tensor in batch]
    return [tensor.normal_(generator=generator) if tensor.is_floating_point() else tensor for tensor in rows]


def require_separate_rows(losses: Tensor, passes: Passes) -> None:
    """Refuse losses of which any has a slope at another row (batch statistics, pairs, cumulative sums)."""
    outputs = [output for _, _, output in passes]
    for row, loss in enumerate(losses):
        slopes = torch.autograd.grad(loss, outputs, retain_graph=True, allow_unused=True)
        if any(slope is None for slope in slopes):
            raise PrivacyError("a Linear layer does not reach the loss; remove it from the trained module")
        for slope in slopes:
            slope[row] = 0
        if any(bool(slope.any()) for slope in slopes):
            raise PrivacyError("the loss of one row depends on other rows; under DP each row's loss is its own")
