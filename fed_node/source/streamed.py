"""Rows that are read anew, piece by piece, whenever they are needed: as much memory for a billion as for a thousand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import chain
from pathlib import Path

import pandas as pd

from fed_node.source.growing import Growing, GrowingOnDisk
from fed_node.source.reading import Reader
from fed_node.source.report import Findings, log_changes
from synth.encoding.records import Codec, Records
from synth.encoding.rows import Rows
from synth.schema import Schema


class StreamedRows(Rows):
    def __init__(self, schema: Schema, read: Callable[[], Reader], scratch: Path) -> None:
        self.codec, self.read, self.scratch = Codec(schema), read, scratch

    def pieces(self) -> Iterator[Records]:
        """By the schema's rules where a cell does not fit; what they changed is counted in the party's own log."""
        reader, names = self.read(), list(self.codec.schema.released)
        findings = Findings(reader)
        nothing = pd.DataFrame(columns=names, dtype="str")
        frames = reader.frames(names)
        for frame in chain([next(frames, nothing)], frames):
            records, problems = self.codec.fit(frame)
            findings.add(problems, len(frame))
            yield records
        log_changes(findings)

    def at_hand(self) -> Records:
        return self._on_disk

    @cached_property
    def _on_disk(self) -> Records:
        return self.gathered(lambda: GrowingOnDisk(self.scratch))

    def gathered(self, make_column: Callable[[], Growing | GrowingOnDisk]) -> Records:
        columns = {name: make_column() for name in self.codec.schema.released}
        for piece in self.pieces():
            for name, values in piece.columns.items():
                columns[name].extend(values)
        return Records({name: column.values for name, column in columns.items()})
