"""A table file of any size as codes and numbers: piece by piece, and never more rows than a limit.

Text cells take many times the memory of what they mean, so each piece is made compact before the next is read. Beyond
the limit a simple random sample stays: every row draws a number, and the rows with the smallest ones are kept, so the
sample depends on the seed alone, not on how the file happened to be cut into pieces.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from fed_node.source import source_of, table_pieces, text_pieces
from synth.errors import InputError
from synth.metrics.tables import FloatArray, Table, joined, table_of
from synth.schema import Schema

MOST_ROWS = 1_000_000
"""Rows of one table in memory: 440 MB for 55 columns, and about four times that while they are compared."""


@dataclass(frozen=True, eq=False)
class Reading:
    table: Table
    rows_in_file: int

    @property
    def is_sampled(self) -> bool:
        return self.table.rows < self.rows_in_file


def read_sample(path: Path, schema: Schema, what: str, *, seed: int, most_rows: int) -> Reading:
    """All rows, or `most_rows` of them; `what` names the table in errors."""
    rng = np.random.default_rng(seed)
    kept: list[Table] = []
    numbers: list[FloatArray] = []  # one per kept row
    rows, threshold = 0, 1.0
    for frame in table_pieces(source_of(path), schema):
        piece = table_of(frame, schema, what if rows == 0 else f"{what} (from row {rows + 2:,} on)")
        drawn = rng.random(piece.rows)
        rows += piece.rows
        low = np.flatnonzero(drawn < threshold)
        kept.append(piece if len(low) == piece.rows else piece.take(low))
        numbers.append(drawn[low])
        if sum(table.rows for table in kept) > 2 * most_rows:
            kept, numbers, threshold = _smallest(kept, numbers, most_rows)
    if sum(table.rows for table in kept) > most_rows:
        kept, numbers, threshold = _smallest(kept, numbers, most_rows)
    return Reading(joined(kept), rows)


def read_text(path: Path, most_rows: int) -> pd.DataFrame:
    """All cells as text, for drafting a schema, which must know every label: so not of a sample, but of a table that is
    small enough."""
    pieces, rows = [], 0
    for piece in text_pieces(path):
        pieces.append(piece)
        rows += len(piece)
        if rows > most_rows:
            raise InputError(
                f"{path} has more than {most_rows:,} rows, too many to draft a schema from; draft one from a part "
                "of it (fedsynth schema draft), complete its bounds and labels, and give it with --schema"
            )
    return pd.concat(pieces, ignore_index=True)


def _smallest(
    tables: list[Table], numbers: list[FloatArray], most_rows: int
) -> tuple[list[Table], list[FloatArray], float]:
    """The rows with the smallest numbers, in the file's order, and the number that later rows must stay below."""
    drawn = np.concatenate(numbers)
    chosen = np.sort(np.argpartition(drawn, most_rows - 1)[:most_rows])
    return [joined(tables).take(chosen)], [drawn[chosen]], float(drawn[chosen].max())
