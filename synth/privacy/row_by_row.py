"""A Linear layer whose output for a row is the same to the last bit wherever the row stands and whoever is beside it.

Clipping bounds what one row adds to a sum only if all other rows' gradients stay as they are. Libraries' products of
matrices do not keep them: the order in which a row's products are added depends on its place (even or odd, near
the end of a block), so one row more moves every row behind it to another rounding. That is no small matter: whoever
chooses the weights can make a score of nothing but rounding error, and its sign then decides whether a row counts.

Here products are added in the order of the inputs, by operations on single elements, which IEEE 754 rounds alike
everywhere. Multiplying and adding are separate on purpose: together they might be fused in one place, not in another.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def linear(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """rows [n, …, inputs] → [n, …, outputs]. Slopes reach the rows; the weights' gradient is for the caller to make."""
    flat: Tensor = _RowByRow.apply(rows.reshape(-1, rows.shape[-1]), weight, bias)  # type: ignore[no-untyped-call]
    return flat.reshape(*rows.shape[:-1], len(weight))


class _RowByRow(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(weight)
        product = _product(rows, weight.T)
        return product if bias is None else product + bias

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, None, None]:
        (weight,) = ctx.saved_tensors
        return _product(slopes[0], weight) if ctx.needs_input_grad[0] else None, None, None


def _product(rows: Tensor, matrix: Tensor) -> Tensor:
    """rows [n, k] · matrix [k, m], one k after the other; rows lie along the last dimension, where memory is fast."""
    total = torch.zeros(matrix.shape[1], len(rows), dtype=rows.dtype)
    term = torch.empty_like(total)
    for column, weights in zip(rows.T.contiguous(), matrix, strict=True):
        torch.mul(weights[:, None], column, out=term)
        total += term
    return total.T.contiguous()
