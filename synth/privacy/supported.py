"""Which networks DP-SGD may train here.

Clipping bounds what one row does to the gradient only if the gradient of a row's loss depends on that row alone and
its norm is computed right. Both fail silently: batch statistics and packing couple rows, a weight in two layers adds
two gradients under one norm. So what is not known to be safe is refused: by structure when training starts, and by the
gradients of a few made-up rows before the first batch. Made-up, because refusing to answer must not depend on data.
"""

from collections.abc import Callable, Iterable, Sequence

import torch
from opacus.layers.dp_rnn import DPRNNBase, RNNLinear
from opacus.validators import ModuleValidator
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from synth.errors import PrivacyError

PerExampleLoss = Callable[..., Tensor]  # rows -> [rows]
Sums = dict[Tensor, Tensor]  # by parameter, float64, in clip norms

KNOWN_LAYERS = (
    nn.Linear,
    nn.LayerNorm,
    nn.GroupNorm,
    nn.Embedding,
    nn.Conv1d,
    nn.Conv2d,
    nn.Conv3d,
    RNNLinear,
)  # of which a row's gradient is known, the latter seven by Opacus


def require_known_layers(module: nn.Module) -> list[nn.Module]:
    """The module's layers, if everything it learns is in known ones and nothing mixes rows."""
    if problems := ModuleValidator.validate(module):
        raise PrivacyError("Opacus refuses this network: " + "; ".join(str(problem) for problem in problems))
    layers: list[nn.Module] = []
    for name, part in module.named_modules():
        if type(part) in KNOWN_LAYERS:
            layers.append(part)
        elif isinstance(part, _BatchNorm) or list(part.buffers(False)) or _has_own_parameters(part):
            raise PrivacyError(
                f"'{name or type(part).__name__}' ({type(part).__name__}) is no layer whose rows can be told apart; "
                f"under DP every parameter must be in one of {', '.join(known.__name__ for known in KNOWN_LAYERS)}, "
                "and no layer may keep statistics of the batch (recurrent layers: synth.privacy.layers)"
            )
        if isinstance(part, nn.Embedding) and (part.max_norm is not None or part.sparse):
            raise PrivacyError("an Embedding must have neither max_norm nor sparse gradients under DP")
    parameters = [parameter for layer in layers for parameter in layer.parameters()]
    if not parameters or len(parameters) != len(set(parameters)):
        raise PrivacyError("DP-SGD needs layers with parameters, each with weights of its own")
    if any(not parameter.requires_grad or parameter.dtype != torch.float32 for parameter in parameters):
        raise PrivacyError("DP-SGD trains every parameter in float32; freeze or convert nothing")
    return layers


def made_up_rows(batch: Sequence[Tensor]) -> list[Tensor]:
    """Eight rows in the shape of the batch's, normal where they are real numbers and 0 where they are not; always the
    same ones, made on the processor."""
    generator = torch.Generator().manual_seed(0)
    rows = [torch.zeros(8, *tensor.shape[1:], dtype=tensor.dtype, device="cpu") for tensor in batch]
    made = [tensor.normal_(generator=generator) if tensor.is_floating_point() else tensor for tensor in rows]
    return [tensor.to(there.device) for tensor, there in zip(made, batch, strict=True)]


def require_separate_rows(losses: Tensor, outputs: Sequence[Tensor], layer_of: Sequence[nn.Module]) -> None:
    """Refuse losses of which any has a slope at another row (batch statistics, pairs, cumulative sums), and layers of
    which no output (rows first) reaches them."""
    reached: set[nn.Module] = set()
    for row, loss in enumerate(losses):
        slopes = torch.autograd.grad(loss, outputs, retain_graph=True, allow_unused=True)
        for layer, slope in zip(layer_of, slopes, strict=True):
            if slope is None:
                continue
            reached.add(layer)
            if bool(slope[:row].any()) or bool(slope[row + 1 :].any()):
                raise PrivacyError("the loss of one row depends on other rows; under DP each row's loss is its own")
    if len(reached) < len(set(layer_of)):
        raise PrivacyError("a layer does not reach the loss; remove it from the trained module")


def require_one_loss_each(losses: Tensor, rows: int) -> None:
    if losses.shape != (rows,):
        raise PrivacyError(f"expected one loss per row, shape ({rows},), got {tuple(losses.shape)}")


def require_all_used(layers: Sequence[nn.Module], used: Iterable[nn.Module]) -> None:
    if idle := len(set(layers) - set(used)):
        raise PrivacyError(f"the loss used {len(layers) - idle} of {len(layers)} layers; each must run")


def _has_own_parameters(part: nn.Module) -> bool:
    """Besides those of its layers, which Opacus' recurrent layers list once more under torch's names."""
    return not isinstance(part, DPRNNBase) and bool(list(part.parameters(recurse=False)))
