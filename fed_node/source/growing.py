"""An array that grows in place, so that a table is never held twice while its pieces are put together."""

from __future__ import annotations

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
