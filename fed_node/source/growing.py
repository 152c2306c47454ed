"""An array that grows in place, so that a table is never held twice while its pieces are put together."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from synth.interface import Array


class Growing:
    """Resizing lets the system move large arrays by their pages; pieces and their copy would need both at once."""

    def __init__(self) -> None:
        self.values: Array = np.empty(0)

    def extend(self, piece: Array) -> None:
        start = len(self.values)
        if start == 0:
            self.values = np.empty(0, dtype=piece.dtype)
        self.values.resize(start + len(piece), refcheck=False)  # nobody else holds it
        self.values[start:] = piece


class GrowingOnDisk:
    """The same in a file that has no name: only this process can read it, and it is gone when the process is."""

    def __init__(self, folder: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed with the last array over it
        self._dtype = np.dtype(np.float64)

    @property
    def values(self) -> Array:
        self._file.flush()
        if self._file.tell() == 0:
            return np.empty(0, dtype=self._dtype)
        return np.memmap(self._file, dtype=self._dtype, mode="r")

    def extend(self, piece: Array) -> None:
        self._dtype = piece.dtype
        self._file.write(np.ascontiguousarray(piece).data)
