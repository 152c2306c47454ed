"""A party's rows as the networks see them: all at once where they fit into memory, else those of a batch when it is
drawn. A row's modes are the same in every batch, drawn by its number from the party's own seed."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from synth.encoding.features import Features
from synth.encoding.mixing import Words
from synth.encoding.records import Records

MOST_BYTES = 1 << 30  # of a matrix in memory


class EncodedRows(Protocol):
    """[n, row width]; what a Poisson sample needs of it."""

    def __len__(self) -> int: ...

    def __getitem__(self, numbers: Tensor) -> Tensor: ...


class RowsOnDemand:
    def __init__(self, data: Records, features: Features, seed: Words) -> None:
        self.data, self.features, self.seed = data, features, seed

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, numbers: Tensor) -> Tensor:
        places = numbers.cpu().numpy()
        return torch.as_tensor(self.features.encode_some(self.data.take(places), places, self.seed))


def fits(data: Records, features: Features) -> bool:
    return len(data) * features.width * np.dtype(np.float32).itemsize <= MOST_BYTES
