"""Rows from a CSV file, as text, a few megabytes at a time."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator
from typing import Any, BinaryIO, cast

import pandas as pd
import pyarrow
import pyarrow.csv

from fed_node.source.places import CsvSource
from fed_node.source.reading import require_file
from synth.errors import DataError, InputError

SEPARATORS = ",;\t|"
BLOCK_BYTES = 1 << 23
GZIP_MAGIC = b"\x1f\x8b"
UNDECODABLE = "\ufffd"
ROW_IN_MESSAGE = re.compile(r"Row #(\d+)")


class CsvFile:
    """`expected` column names tell the right separator from characters that merely occur."""

    def __init__(self, source: CsvSource, expected: Collection[str] = ()) -> None:
        require_file(source.path)
        self.source = source
        self.place = f"the file {source.path}"
        self.malformed: list[int] = []
        line = self._first_line()
        self.separator = source.separator or _likely_separator(line, expected)
        self._header = _cells(line, self.separator)

    def header(self) -> list[str]:
        return self._header

    def frames(self, columns: list[str]) -> Iterator[pd.DataFrame]:
        text = pyarrow.string()
        with self._bytes() as file:
            try:
                batches = pyarrow.csv.open_csv(
                    file,
                    # One thread: only then are rows numbered.
                    pyarrow.csv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES, encoding=self.source.encoding),
                    pyarrow.csv.ParseOptions(
                        delimiter=self.separator, newlines_in_values=True, invalid_row_handler=self._leave_out
                    ),
                    pyarrow.csv.ConvertOptions(
                        include_columns=columns, column_types=dict.fromkeys(columns, text), strings_can_be_null=False
                    ),
                )
                for batch in batches:
                    yield batch.to_pandas()
            except (pyarrow.ArrowInvalid, UnicodeError, EOFError, OSError) as error:
                if not _is_only_a_header(error):
                    raise self._unreadable(str(error)) from None  # Arrow's text may quote cells

    def _leave_out(self, row: Any) -> str:
        self.malformed.append(row.number)
        return "skip"

    def _first_line(self) -> str:
        """The header row. A quoted name may run over several lines; nobody writes that, so it is not looked for."""
        encoding = "utf-8-sig" if self.source.encoding.lower() in ("utf-8", "utf8") else self.source.encoding
        try:
            # What cannot be decoded further down is found later, with its row number.
            with self._bytes() as file, io.TextIOWrapper(file, encoding=encoding, errors="replace") as text:
                line = next((line for line in text if line.strip()), None)
        except (pyarrow.ArrowInvalid, EOFError, OSError) as error:
            raise self._unreadable(str(error)) from None
        except LookupError:
            raise InputError(f"'{self.source.encoding}' is no encoding that Python knows; try 'utf-8'.") from None
        if line is None:
            raise InputError(f"{self.place} has nothing but blank lines; it needs a header and rows.")
        if UNDECODABLE in line:
            raise self._unreadable("Row #1")
        return line.rstrip("\n")

    def _bytes(self) -> BinaryIO:
        with self.source.path.open("rb") as file:
            compressed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        return cast(BinaryIO, pyarrow.input_stream(self.source.path, compression="gzip" if compressed else None))

    def _unreadable(self, message: str) -> DataError:
        if found := ROW_IN_MESSAGE.search(message):
            where = f"row {found[1]} of {self.place} (the header is row 1)"
        else:
            where = self.place
        return DataError(
            f"{where} cannot be read as {self.source.encoding} text: another encoding, or the file is cut. Save it "
            "as UTF-8 or export it again; a party may set 'encoding' of its source instead (for example 'latin-1')."
        )


def _is_only_a_header(error: BaseException) -> bool:
    """Arrow's word for a header without a line feed and nothing after it."""
    return "cannot infer number of columns" in str(error)


def _likely_separator(line: str, expected: Collection[str]) -> str:
    def fit(separator: str) -> tuple[int, int]:
        cells = _cells(line, separator)
        return len(set(cells) & set(expected)), len(cells)

    return max(SEPARATORS, key=fit)


def _cells(line: str, separator: str) -> list[str]:
    return next(csv.reader([line], delimiter=separator))
