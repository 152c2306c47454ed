"""A Linear layer whose output for a row is the same to the last bit wherever the row stands and whoever is beside it.

Clipping bounds what one row adds to a sum only if all other rows' gradients stay as they are. Libraries' products of
matrices do not keep them: the order in which a row's products are added depends on its place (even or odd, near
the end of a block), so one row more moves every row behind it to another rounding. That is no small matter: whoever
chooses the weights can make a score of nothing but rounding error, and its sign then decides whether a row counts.

Here the order cannot matter because nothing is rounded while products are added. Every row and every column of the
weights is first brought to integers of `b` bits, each by a power of two of its own; a product of two has 2b bits, and
a sum of k of them at most 2b + log₂ k ≤ 53, which float64 holds exactly, in any order, fused or not, on any device.
For 256 inputs b is 22, so a row loses about as much as float32 does. The steps before and after work on single
elements, which IEEE 754 rounds alike everywhere.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

EXACT_BITS = 53  # of a float64: integers up to 2⁵³ are exact


def linear(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """rows [n, …, inputs] → [n, …, outputs]. Slopes reach the rows; the weights' gradient is for the caller to make."""
    flat: Tensor = _RowByRow.apply(rows.reshape(-1, rows.shape[-1]), weight, bias)  # type: ignore[no-untyped-call]
    return flat.reshape(*rows.shape[:-1], len(weight))


class _RowByRow(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(weight)
        product = _product(rows, weight.T)
        return (product if bias is None else product.add_(bias)).to(rows.dtype)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, None, None]:
        (weight,) = ctx.saved_tensors
        if not ctx.needs_input_grad[0]:
            return None, None, None
        return _product(slopes[0], weight).to(slopes[0].dtype), None, None


def _product(rows: Tensor, matrix: Tensor) -> Tensor:
    """rows [n, k] · matrix [k, m], in float64."""
    bits = (EXACT_BITS - (len(matrix) - 1).bit_length()) // 2
    whole_rows, row_unit = _integers(rows, 1, bits)
    whole_columns, column_unit = _integers(matrix, 0, bits)
    return torch.mm(whole_rows, whole_columns).mul_(row_unit).mul_(column_unit)


def _integers(values: Tensor, along: int, bits: int) -> tuple[Tensor, Tensor]:
    """Integers of at most `bits` bits, and the power of two to multiply them by, one for each row (or column)."""
    exponents = torch.frexp(values.abs().amax(along, keepdim=True)).exponent
    unit, inverse = _power_of_two(exponents - bits), _power_of_two(bits - exponents)
    return values.double().mul_(inverse).round_(), unit


def _power_of_two(exponents: Tensor) -> Tensor:
    """By its bits, since libraries may round a power differently at the end of an array."""
    return ((exponents.long() + 1023) << 52).view(torch.float64)
