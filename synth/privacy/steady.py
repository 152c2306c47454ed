"""Matrix products in which a row counts the same wherever it stands.

A row's clipped gradient must not depend on the rows beside it, not even in its last bit: n others that all move by 2⁻²⁴
of a clip norm would be more than the noise allows for. Libraries for matrix products work off very few rows, and rows
at the edge of a narrow matrix, by another order of additions. So batches are filled up to a multiple of PADDED_ROWS
rows, and layers narrower than NARROW are widened with zeros, which add nothing. That this is enough is measured on the
processors that run the tests (`test_a_row_counts_the_same_in_any_company`), not proven for all.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from torch import Tensor, nn
from torch.nn import functional as F

PADDED_ROWS = 64
NARROW = 16  # measured: 2 to 11 outputs or inputs are at risk, a single one is not


def padded(rows: Tensor) -> Tensor:
    missing = -len(rows) % PADDED_ROWS
    return F.pad(rows, (0, 0) * (rows.dim() - 1) + (0, missing)) if missing else rows


@contextmanager
def steady(module: nn.Module) -> Iterator[None]:
    """While open, narrow Linear layers run as wide ones; hooks see what they always see."""
    narrow = [
        part
        for part in module.modules()
        if isinstance(part, nn.Linear) and any(1 < width < NARROW for width in (part.in_features, part.out_features))
    ]
    for layer in narrow:
        layer.forward = partial(_widened, layer)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for layer in narrow:
            del layer.forward


def _widened(layer: nn.Linear, inputs: Tensor) -> Tensor:
    more_in, more_out = (max(0, NARROW - width) for width in (layer.in_features, layer.out_features))
    bias = None if layer.bias is None else F.pad(layer.bias, (0, more_out))
    weight = F.pad(layer.weight, (0, more_in, 0, more_out))
    return F.linear(F.pad(inputs, (0, more_in)), weight, bias)[..., : layer.out_features]
