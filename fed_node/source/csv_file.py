"""Rows from a CSV file, as text, a few megabytes at a time.

Separator, header and the kind of line ends are read off the first line, so no row has a say in them. Bytes that are no
text become U+FFFD, which no label, number or time contains.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

import pandas as pd

from fed_node.source.csv_cells import cells
from fed_node.source.csv_rows import whole_rows
from fed_node.source.places import CsvSource
from fed_node.source.reading import UNDECODABLE, require_file, require_text
from synth.errors import DataError, InputError

SEPARATORS = ",;\t|"
BLOCK_CHARACTERS = 1 << 22
GZIP_MAGIC = b"\x1f\x8b"


class CsvFile:
    """`expected` column names tell the right separator from characters that merely occur."""

    def __init__(self, source: CsvSource, expected: Collection[str] = ()) -> None:
        require_file(source.path)
        require_text(source.path, source.encoding)
        if source.separator is not None and not source.separator.isascii():
            raise InputError(f"the separator of {source.path} is no ASCII character; export the file with another.")
        self.source = source
        self.place = f"the file {source.path}"
        self.malformed: list[int] = []
        with self._text() as text:
            line = _first_line(text)
        if not line:
            raise InputError(f"{self.place} has nothing but blank lines; it needs a header and rows.")
        if UNDECODABLE in line:
            raise self._unreadable()
        self.separator = source.separator or _likely_separator(line.rstrip("\r\n"), expected)
        self._header = _cells(line.rstrip("\r\n"), self.separator)

    def header(self) -> list[str]:
        return self._header

    def frames(self, columns: list[str]) -> Iterator[pd.DataFrame]:
        records = 0
        for rows in whole_rows(self._blocks(), self.separator, len(self._header)):
            if rows:
                left_out = len(self.malformed)
                frame = self._frame(rows, columns, records)
                records += len(frame) + len(self.malformed) - left_out
                yield frame

    def _frame(self, rows: bytes, columns: list[str], records: int) -> pd.DataFrame:
        """`records` of the file came before these rows."""
        wanted = [self._header.index(name) for name in columns]
        frame, left_out = cells(rows, self.separator, len(self._header), wanted)
        self.malformed += [records + number + 1 for number in left_out]  # the header is row 1
        return frame.set_axis(columns, axis=1)

    def _blocks(self) -> Iterator[bytes]:
        """What follows the header, in UTF-8, lines ended by line feeds as the header's is, or else by returns."""
        with self._text() as text:
            returns_alone = _first_line(text).endswith("\r")
            while block := text.read(BLOCK_CHARACTERS):
                yield (block.replace("\r", "\n") if returns_alone else block).encode("utf-8", errors="replace")

    @contextmanager
    def _text(self) -> Iterator[io.TextIOWrapper]:
        encoding = "utf-8-sig" if self.source.encoding.lower() in ("utf-8", "utf8") else self.source.encoding
        try:
            with self._bytes() as file, io.TextIOWrapper(file, encoding, errors="replace", newline="") as text:
                yield text
        except (EOFError, OSError, zlib.error):
            raise self._unreadable() from None
        except LookupError:
            raise InputError(f"'{self.source.encoding}' is no encoding that Python knows; try 'utf-8'.") from None

    def _bytes(self) -> BinaryIO:
        """Python's own files: a reader that is left half-way must not end in another library's destructor."""
        with self.source.path.open("rb") as file:
            compressed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        return cast(BinaryIO, gzip.open(self.source.path) if compressed else self.source.path.open("rb"))

    def _unreadable(self) -> DataError:
        return DataError(
            f"{self.place} cannot be read as {self.source.encoding} text: another encoding, or the file is cut. Save "
            "it as UTF-8 or export it again; a party may set 'encoding' of its source instead (for example 'latin-1')."
        )


def _first_line(text: io.TextIOWrapper) -> str:
    """The header row. A quoted name may run over several lines; nobody writes that, so it is not looked for."""
    return next((line for line in iter(text.readline, "") if line.strip()), "")


def _likely_separator(line: str, expected: Collection[str]) -> str:
    def fit(separator: str) -> tuple[int, int]:
        cells = _cells(line, separator)
        return len(set(cells) & set(expected)), len(cells)

    return max(SEPARATORS, key=fit)


def _cells(line: str, separator: str) -> list[str]:
    return next(csv.reader([line], delimiter=separator))
