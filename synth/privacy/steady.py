"""Layers that run on Opacus, in which a row counts the same wherever it stands.

A row's clipped gradient must not depend on the rows beside it, not even in its last bit: n others that all move by 2⁻²⁴
of a clip norm would be more than the noise allows for. Linear layers are exact (see `row_by_row`). Of all other
functions libraries work off the last few elements by another path, so batches are filled up to a multiple of
PADDED_ROWS rows. That this is enough is measured on the processors that run the tests
(`test_a_row_counts_the_same_in_any_company`), not proven for all; on a GPU it is to be measured by whoever has one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from torch import Tensor, nn
from torch.nn import functional as F

from synth.privacy.row_by_row import linear

PADDED_ROWS = 64


def padded(rows: Tensor, most: int) -> Tensor:
    """On a processor to a multiple of PADDED_ROWS. A GPU cuts its work by the shape of the whole, so that pieces there
    all have the one shape, of `most` rows, however many join."""
    missing = -len(rows) % PADDED_ROWS if rows.device.type == "cpu" else most - len(rows)
    return F.pad(rows, (0, 0) * (rows.dim() - 1) + (0, missing)) if missing else rows


@contextmanager
def steady(module: nn.Module) -> Iterator[None]:
    """While open, Linear layers run row by row; hooks see what they always see."""
    layers = [part for part in module.modules() if isinstance(part, nn.Linear)]
    for layer in layers:
        layer.forward = partial(_row_by_row, layer)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward


def _row_by_row(layer: nn.Linear, inputs: Tensor) -> Tensor:
    return linear(inputs, layer.weight, layer.bias)
