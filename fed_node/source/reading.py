"""What every kind of source can do: name its columns, and hand over the chosen ones piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pandas as pd

from synth.errors import InputError

UNDECODABLE = "\ufffd"  # what bytes that are no text become


class Reader(Protocol):
    """One opened source. Errors name columns and row numbers (the header is row 1), never a cell.

    A reader refuses only what is the same whatever any single row holds: no file, no header, no connection. A row that
    is none is left out.
    """

    place: str  # what messages call it
    malformed: list[int]  # rows that do not have as many cells as the header, so far; `frames` leaves them out

    def header(self) -> list[str]: ...

    def frames(self, columns: list[str]) -> Iterator[pd.DataFrame]: ...


def require_file(path: Path) -> None:
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "is not a file" if path.exists() else "does not exist"
        raise InputError(f"the data file {path} {what}; correct its path.")
    if path.stat().st_size == 0:
        raise InputError(f"the data file {path} is empty; it needs a header and rows.")
