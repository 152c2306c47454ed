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


SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods")
SIGNATURES = {b"PK\x03\x04": "a zip archive or a spreadsheet", b"%PDF": "a PDF", b"PAR1": "Parquet; name it .parquet",
              b"\xd0\xcf\x11\xe0": "an old spreadsheet", b"SQLite": "a database", b"\x89HDF": "HDF5"}  # fmt: skip


def require_text(path: Path, encoding: str) -> None:
    """Refuse what is certainly no table of text, by its first bytes: no row has a say in it."""
    if path.suffix.lower() in SPREADSHEETS:
        raise InputError(
            f"{path} is a spreadsheet, which is not read here: save the sheet as CSV (UTF-8), or convert it with "
            f"pandas: pd.read_excel({path.name!r}).to_csv({path.with_suffix('.csv').name!r}, index=False)"
        )
    with path.open("rb") as file:
        start = file.read(4096).split(b"\n", 1)[0]  # of the header alone
    for signature, what in SIGNATURES.items():
        if start.startswith(signature):
            raise InputError(f"{path} is no CSV file: it is {what}. Export the table as CSV or Parquet.")
    if encoding.lower() in ("utf-8", "utf8") and not start.startswith(b"\x1f\x8b") and b"\x00" in start:
        raise InputError(f"{path} is no text: it holds zero bytes. Export the table as CSV (UTF-8) or Parquet.")


def require_file(path: Path) -> None:
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "is not a file" if path.exists() else "does not exist"
        raise InputError(f"the data file {path} {what}; correct its path.")
    if path.stat().st_size == 0:
        raise InputError(f"the data file {path} is empty; it needs a header and rows.")
