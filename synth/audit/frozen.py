"""All other randomness, frozen such that it does not matter how many rows there are.

Row sampling, dropout, made-up rows and modes draw from generators whose state moves on with every row, so one row more
would give all others different luck. That is no leak (luck that is independent of the rows says nothing about them),
but it would drown what an audit looks for. Here every call draws from the start of a stream of its own, so the first n
of n + 1 values are the n values of the other run.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from synth.audit.tape import Tape
from synth.privacy.dpsgd import PrivateGradient


class CallByCall:
    """A NumPy generator of which every method call starts anew."""

    def __init__(self, tape: Tape, seed: Any) -> None:
        self._tape, self._seed = tape, seed

    def __getattr__(self, method: str) -> Any:
        place = self._tape.next_place(f"numpy {self._seed}")
        digits = [place, *(abs(hash(part)) for part in np.atleast_1d(self._seed if self._seed is not None else 0))]
        return getattr(np.random.Generator(np.random.PCG64(digits)), method)


class TorchCallByCall(TorchFunctionMode):
    """Every call of a torch function has its own luck: by its name, how often it was called, and since which release.

    Counted from the latest release on: an empty batch may leave calls out, and the next step shall have the same luck.
    """

    def __init__(self, tape: Tape) -> None:
        super().__init__()
        self._tape = tape

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        name = f"torch {getattr(function, '__name__', function)} after {len(self._tape.releases)}"
        torch.default_generator.manual_seed(zlib.crc32(f"{name} {self._tape.next_place(name)}".encode()))
        return function(*arguments, **(keywords or {}))


@contextmanager
def recorded(tape: Tape) -> Iterator[None]:
    """While open, DP-SGD steps are written to the tape and all randomness besides noise is frozen call by call."""
    step = PrivateGradient.__call__

    def observed(gradient: PrivateGradient, *arguments: Any) -> Any:
        return tape.observed(step, gradient, *arguments)

    with (
        patch.object(PrivateGradient, "__call__", observed),
        patch.object(np.random, "default_rng", lambda seed=None: CallByCall(tape, seed)),
        torch.random.fork_rng(devices=[]),
        TorchCallByCall(tape),
    ):
        yield
