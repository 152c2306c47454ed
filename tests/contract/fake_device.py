"""A device that is not there: torch takes its tensors for another device's, and they are computed on the processor.

What a GPU refuses, it refuses: an operation on tensors of two devices, numpy's view of its memory. So a network that
was left behind, a batch that was never moved or a sum that was never fetched fails a test on a machine without any
GPU; and since the very same kernels compute, results must be equal to the last bit.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

DEVICE = torch.device("lazy", 0)  # a name that torch knows, with no code behind it
MOVES = ("aten::_to_copy", "aten::copy_")
INDEXED = ("aten::index", "aten::index_put_", "aten::_index_put_impl_")  # CUDA takes indices of the processor, too


class Elsewhere(Tensor):
    """A tensor of the device; `held` are its numbers."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> Elsewhere:
        made: Elsewhere = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=DEVICE,
        )
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return carried_out(func, args, kwargs or {})


class Fake(TorchDispatchMode):
    """While open, the device is there."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return carried_out(func, args, kwargs or {})


def carried_out(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    name = func.name().partition(".")[0]
    tensors = [each for each in tree_flatten((args, kwargs))[0] if isinstance(each, Tensor)]
    here = [each for each in tensors if not isinstance(each, Elsewhere) and each.dim() > 0]
    there = [each for each in tensors if isinstance(each, Elsewhere)]
    if here and there and name not in (*MOVES, *INDEXED):
        raise RuntimeError(f"{name}: expected all tensors to be on the same device")
    target = kwargs.get("device")
    on_device = isinstance(args[0], Elsewhere) if name == "aten::copy_" else bool(there)
    if target is not None:
        on_device, kwargs = torch.device(target) == DEVICE, kwargs | {"device": torch.device("cpu")}
    found = func(*tree_map(_held, args), **tree_map(_held, kwargs))
    if name.endswith("_") and not name.endswith("__") and isinstance(args[0], Elsewhere):
        return args[0]  # in place
    return tree_map(lambda each: Elsewhere(each) if isinstance(each, Tensor) and on_device else each, found)


def _held(each: Any) -> Any:
    return each.held if isinstance(each, Elsewhere) else each
