"""Rows that an engine counts. What it cannot tell as we do, or fails to count, is read and counted here instead.

An engine that fails on the cells of one row (text that is no text, a time that it cannot convert) must not make the
party refuse: that would tell of the row. So the counts come either way, and are the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from fed_node.source.engines.counting import count_histograms, count_tables, places_of
from fed_node.source.engines.dialects import DIALECTS, Dialect
from fed_node.source.engines.opening import EngineFailed, Opened, opened
from fed_node.source.engines.place import Place
from fed_node.source.places import EngineSource, ParquetSource
from fed_node.source.reading import Reader
from fed_node.source.streamed import StreamedRows
from synth.encoding.bins import Bins
from synth.encoding.cells import Cells
from synth.encoding.contingency import Clique, Ints
from synth.schema import Schema

Count = Callable[[Opened, dict[str, Place]], Ints]
log = logging.getLogger("fed_node")


class EngineRows(StreamedRows):
    def __init__(
        self, schema: Schema, read: Callable[[], Reader], scratch: Path, source: ParquetSource | EngineSource
    ) -> None:
        super().__init__(schema, read, scratch)
        self.source = source

    def histograms(self, cells: Cells) -> Ints:
        def count(engine: Opened, places: dict[str, Place]) -> Ints:
            return count_histograms(engine.backend, engine.rows, places, cells)

        found = self.counted(cells, count)
        return super().histograms(cells) if found is None else found

    def tables(self, bins: Bins, names: list[str], cliques: Sequence[Clique]) -> Ints:
        def count(engine: Opened, places: dict[str, Place]) -> Ints:
            return count_tables(engine.backend, engine.rows, places, bins, names, cliques)

        found = self.counted(bins.cells, count)
        return super().tables(bins, names, cliques) if found is None else found

    def counted(self, cells: Cells, count: Count) -> Ints | None:
        """What the engine counts; None where it cannot."""
        try:
            with opened(self.source, self.scratch) as engine:
                dialect = DIALECTS.get(engine.backend.name)
                placed = None if dialect is None else self.placed(engine, cells, dialect)
                if placed is not None:
                    return count(*placed)
        except EngineFailed as failed:
            log.warning("the engine could not count the rows (%s); they are read piece by piece instead", failed)
            return None
        log.info("the engine holds a column that only we can read; the rows are read piece by piece")
        return None

    def placed(self, engine: Opened, cells: Cells, dialect: Dialect) -> tuple[Opened, dict[str, Place]] | None:
        """The records in the engine, and the places of their columns; None if it cannot tell them as we do."""
        places = places_of(engine.rows, engine.forms, cells, dialect)
        return None if places is None else (engine, places)
