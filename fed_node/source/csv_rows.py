"""The text of a CSV file cut into whole rows, so that no row can reach into another.

A cell may hold line feeds if it is quoted, so a quote that is never closed would swallow every row behind it, and a row
longer than a reader's block would end the reading: both would let one row decide about the others. Here such a row is
on its own. Rows in which every quote stands where it belongs are passed on as they are; the others are taken apart
with care and written again. A row that is none (wrong number of cells, a quote that is not closed within
`LONGEST_QUOTE` bytes, or closed where another cell begins) becomes one that every reader leaves out: one cell too many.

Bytes are UTF-8, in which separators, quotes and line feeds are single bytes that occur in no other character.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

LONGEST_QUOTE = 1 << 16  # bytes; behind an opening quote nobody looks farther for its end
Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
QUOTE, LINE, RETURN = b'"\n\r'


def whole_rows(pieces: Iterable[bytes], separator: str, width: int) -> Iterator[bytes]:
    """The same rows, each of `width` cells or left out by its length; a piece never ends within a row."""
    cutter, rest = _Cutter(separator.encode(), width), b""
    for piece in pieces:
        rows, rest = cutter.cut(rest + piece, last=False)
        yield rows
    rows, _ = cutter.cut(rest if not rest or rest.endswith(b"\n") else rest + b"\n", last=True)
    yield rows


class _Cutter:
    def __init__(self, separator: bytes, width: int) -> None:
        self.separator, self.width = separator, width
        self.no_row = separator * width + b"\n"
        to_separator = b"[^" + re.escape(separator) + rb"\n]*+"
        quoted = rb'"((?:[^"]|"")*+)"(' + to_separator + b")"
        self._cell = re.compile(quoted + b"|(" + to_separator + b")")

    def cut(self, text: bytes, last: bool) -> tuple[bytes, bytes]:
        """The rows that end in this text, and what is left for the next."""
        ends = np.flatnonzero(np.frombuffer(text, np.uint8) == LINE)
        if not len(ends):
            return b"", text
        stop = int(ends[-1]) + 1
        doubtful = self._doubtful(np.frombuffer(text, np.uint8, stop), ends)
        if not len(doubtful):
            return text[:stop], text[stop:]
        return self._mended(text, ends, doubtful, last)

    def _mended(self, text: bytes, ends: Ints, doubtful: Ints, last: bool) -> tuple[bytes, bytes]:
        rows, done = [], 0
        for line in doubtful:
            start, end = int(ends[line - 1]) + 1 if line else 0, int(ends[line]) + 1
            if start < done:  # it was part of a quoted cell
                continue
            rows.append(text[done:start])
            limit = max(end, start + LONGEST_QUOTE)
            found = self._read(text, start, min(limit, len(text)))
            if found is None and not last and len(text) < limit:
                return b"".join(rows), text[start:]  # its quote may be closed further on
            row, done = found if found is not None else (self.no_row, end)
            rows.append(row)
        stop = max(done, int(ends[-1]) + 1)
        return b"".join([*rows, text[done:stop]]), text[stop:]

    def _read(self, text: bytes, start: int, limit: int) -> tuple[bytes, int] | None:
        """The row that begins here, every cell quoted, and where it ends; None if it does not end before the limit."""
        cells, place, over_lines = [], start, False
        while (found := self._cell.match(text, place, limit)) is not None and (place := found.end()) < limit:
            quoted, behind, plain = found.groups()
            ends = text[place] == LINE
            tail = plain if quoted is None else behind
            tail = tail.removesuffix(b"\r") if ends else tail
            if quoted is None and tail.startswith(b'"'):
                return None  # opened, and not closed before the limit
            over_lines = over_lines or (quoted is not None and b"\n" in quoted)
            if over_lines and (tail if quoted is not None else b'"' in tail):
                # A row over several lines is taken only with every quote in place: else it was a stray quote that
                # opened it, and the one that seemed to close it opens a cell further on.
                return self.no_row, text.index(b"\n", start) + 1
            cells.append((quoted or b"") + tail.replace(b'"', b'""'))
            place += 1
            if ends:
                return self._written(cells, text.index(b"\n", start) + 1, place)
        return None

    def _written(self, cells: list[bytes], end_of_line: int, end_of_row: int) -> tuple[bytes, int]:
        """A row of another width is none; only its first line goes, whatever a stray quote joined to it."""
        if len(cells) != self.width:
            return self.no_row, end_of_line
        return b'"' + (b'"' + self.separator + b'"').join(cells) + b'"\n', end_of_row

    def _doubtful(self, text: Bytes, ends: Ints) -> Ints:
        """Lines with a quote that does not stand where it belongs, or with a carriage return inside."""
        returns = np.flatnonzero(text[:-1] == RETURN)
        strange = returns[text[returns + 1] != LINE]
        quotes = np.flatnonzero(text == QUOTE)
        if len(quotes):
            line = np.searchsorted(ends, quotes)
            before, behind = text[np.maximum(quotes - 1, 0)], text[quotes + 1]
            before[quotes == 0] = LINE
            number = np.arange(len(quotes)) - np.searchsorted(line, line)  # within its line
            at_start = np.isin(before, [LINE, self.separator[0], QUOTE])
            at_end = np.isin(behind, [LINE, RETURN, self.separator[0], QUOTE])
            odd = np.bincount(line, minlength=len(ends))[line] % 2 == 1
            misplaced = np.where(number % 2 == 0, ~at_start, ~at_end)
            strange = np.append(strange, quotes[odd | misplaced])
        return np.unique(np.searchsorted(ends, strange))
