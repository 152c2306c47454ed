"""Random numbers for the networks, one stream for each purpose.

What leaves a party may depend on rows only under noise, and that includes luck: were the made-up rows of a step drawn
from a stream that real rows advance, their number would show in every made-up row. So whatever depends on no row has a
stream of its own, whose position is public, and each step starts new ones. All begin from 128 bits or more of the
party's noise source; torch's own generator keeps 32 of its seed and is not used by a party at all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from synth.privacy.noise import NoiseSource

SEED_BYTES = 32


class Stream:
    """Random tensors from one seed, drawn on the processor and moved to where the networks are."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.Generator(np.random.PCG64(seed))

    @classmethod
    def of(cls, noise: NoiseSource) -> Stream:
        return cls(int.from_bytes(noise.random_bytes(SEED_BYTES)))

    def normal(self, rows: int, width: int) -> Tensor:
        return torch.as_tensor(self.rng.standard_normal((rows, width), dtype=np.float32))

    def uniform(self, rows: int, width: int) -> Tensor:
        """In [0, 1)."""
        return torch.as_tensor(self.rng.random((rows, width), dtype=np.float32))

    def gumbel(self, rows: int, width: int) -> Tensor:
        """From uniforms clamped away from 0 and 1, so it is finite."""
        return self.uniform(rows, width).clamp_(1e-20, 1 - 1e-7).log_().neg_().log_().neg_()

    def integers(self, below: int, count: int) -> Tensor:
        return torch.as_tensor(self.rng.integers(below, size=count))

    def labels(self, weights: npt.NDArray[np.float64], count: int) -> Tensor:
        """Codes in proportion to their weights."""
        upto = np.cumsum(weights)
        return torch.as_tensor(np.searchsorted(upto / upto[-1], self.rng.random(count), side="right"))


@dataclass(frozen=True)
class StepStreams:
    """The luck of one step at a party; all but the last may move on with the rows that join."""

    rows: NoiseSource  # which rows join
    conditions: Stream  # which column each real row's condition names
    dropout: Stream  # units dropped on real rows, and whatever else is random in their losses
    made_up: Stream  # everything that depends on no row

    @classmethod
    def of(cls, noise: NoiseSource, step: int) -> StepStreams:
        def child(name: str) -> NoiseSource:
            return noise.child("step", step, name)

        return cls(child("rows"), *(Stream.of(child(name)) for name in ("conditions", "dropout", "made up")))
