"""Rows from a Parquet file, typed, a few hundred thousand at a time. Columns that are not asked for are not read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow
import pyarrow.parquet

from fed_node.source.arrow_cells import frame_of
from fed_node.source.places import ParquetSource
from fed_node.source.reading import require_file
from synth.errors import DataError

ROWS_AT_ONCE = 1 << 17


class ParquetFile:
    def __init__(self, source: ParquetSource) -> None:
        require_file(source.path)
        self.source = source
        self.place = f"the file {source.path}"
        self.malformed: list[int] = []
        try:
            self._fields = pyarrow.parquet.read_schema(source.path)
        except (pyarrow.ArrowException, OSError):
            raise self._unreadable() from None

    @property
    def rows(self) -> int:
        return int(pyarrow.parquet.read_metadata(self.source.path).num_rows)

    @property
    def fields(self) -> Any:
        """The file's own schema."""
        return self._fields

    def header(self) -> list[str]:
        return list(self._fields.names)

    def frames(self, columns: list[str]) -> Iterator[pd.DataFrame]:
        for name in columns:
            self._require_flat(name)
        try:
            with pyarrow.parquet.ParquetFile(self.source.path, buffer_size=1 << 20, pre_buffer=False) as file:
                for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=columns):
                    yield frame_of(batch)
        except (pyarrow.ArrowException, OSError):
            raise self._unreadable() from None

    def _require_flat(self, name: str) -> None:
        if pyarrow.types.is_nested(self._fields.field(name).type):
            raise DataError(f"{self.place}, column '{name}': holds lists or records; a cell must be one value.")

    def _unreadable(self) -> DataError:
        return DataError(f"{self.place} cannot be read as Parquet: it is cut, or of another format. Export it again.")
