"""The cells of whole CSV rows as text: by Arrow where it is installed, else by Python's own reader, to the same cells.

Arrow is the faster one and 170 MB; whoever only drafts a schema or evaluates a table need not have it.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable
from typing import Any, cast

import pandas as pd

from synth.errors import DataError

# (rows in UTF-8, separator, cells in a row, which of them are wanted) → the wanted cells, and the numbers of the rows
# that were left out because they have more or fewer cells; the first row is 1, blank lines are none.
Reading = Callable[[bytes, str, int, list[int]], tuple[pd.DataFrame, list[int]]]


def cells(rows: bytes, separator: str, width: int, wanted: list[int]) -> tuple[pd.DataFrame, list[int]]:
    return READING(rows, separator, width, wanted)


def cells_by_arrow(rows: bytes, separator: str, width: int, wanted: list[int]) -> tuple[pd.DataFrame, list[int]]:
    import pyarrow.csv

    left_out: list[int] = []

    def leave_out(row: Any) -> str:
        left_out.append(row.number)
        return "skip"

    names = [str(place) for place in wanted]
    try:
        table = pyarrow.csv.read_csv(
            pyarrow.BufferReader(rows),
            # One thread: only then are rows numbered. One block: they are whole.
            pyarrow.csv.ReadOptions(
                use_threads=False, block_size=len(rows) + 1, column_names=[str(place) for place in range(width)]
            ),
            pyarrow.csv.ParseOptions(delimiter=separator, newlines_in_values=True, invalid_row_handler=leave_out),
            pyarrow.csv.ConvertOptions(
                include_columns=names, column_types=dict.fromkeys(names, pyarrow.string()), strings_can_be_null=False
            ),
        )
    except (pyarrow.ArrowException, OSError):  # whose words quote the cells they fell over
        raise DataError("some rows cannot be read as CSV: is the file binary, or cut? Export it again.") from None
    return cast(pd.DataFrame, table.to_pandas()), left_out


def cells_by_python(rows: bytes, separator: str, width: int, wanted: list[int]) -> tuple[pd.DataFrame, list[int]]:
    csv.field_size_limit(sys.maxsize)  # its own limit would let one long cell end the reading
    kept, left_out = [], []
    lines = filter(None, csv.reader(io.StringIO(rows.decode(), newline=""), delimiter=separator))
    for number, row in enumerate(lines, start=1):
        if len(row) == width:
            kept.append(row)
        else:
            left_out.append(number)
    columns = list(zip(*kept, strict=True)) or [()] * width
    return pd.DataFrame({str(place): pd.Series(columns[place], dtype="str") for place in wanted}), left_out


def _preferred() -> Reading:
    try:
        import pyarrow.csv  # noqa: F401
    except ModuleNotFoundError:
        return cells_by_python
    return cells_by_arrow


READING = _preferred()
