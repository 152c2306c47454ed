"""A table as a new file: of the format that its name says, and never over another one by accident."""

from __future__ import annotations

import io
from importlib import import_module
from pathlib import Path

import pandas as pd

from synth.errors import InputError, OutputError
from synth.messages.archive import write_durably

FORMATS = ".csv, .csv.gz or .parquet"


def require_new_table(path: Path, overwrite: bool = False) -> None:
    """Before anything is computed: a name whose format is known, in a folder that is there, of no other file."""
    if not path.name.lower().endswith((".csv", ".csv.gz", ".parquet")):
        raise InputError(f"{path}: its name says no format that is written here; let it end in {FORMATS}")
    if path.suffix.lower() == ".parquet":
        import_module("pyarrow")  # the light installation has none, and says so
    require_new_file(path, overwrite)


def require_new_file(path: Path, overwrite: bool = False) -> None:
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the path of a file in it")
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists already; choose another --out, or add --overwrite")
    if path.parent.exists() and not path.parent.is_dir():
        raise OutputError(f"cannot write {path}: {path.parent} is a file. Choose another --out.")
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent}; make it (mkdir -p {path.parent}) or choose another --out")


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Whole or not at all."""
    if path.suffix.lower() == ".parquet":
        content = io.BytesIO()
        table.to_parquet(content, index=False)
        write_durably(path, content.getvalue())
        return
    text = table.to_csv(index=False).encode()
    if path.suffix.lower() == ".gz":
        import gzip

        text = gzip.compress(text, mtime=0)
    write_durably(path, text)
