"""Of every person no more rows than the plan uses, chosen and put side by side by the engine, in the query that counts.

    rows that fit ─► number among their owner's, by cells ─► SHA-256 of key, number, owner ─► the first few

That is what `synth/encoding/gathering.py` does in memory, with the same coin: the same records, so the same counts. The
key of the coin is part of the query; an engine that keeps a log of queries keeps it there, at the party.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import ibis
import numpy as np

from fed_node.source.engines.compared import Compared
from fed_node.source.engines.counting import fitting, place_of, places_of
from fed_node.source.engines.dialects import Dialect
from fed_node.source.engines.expressions import Expression, empty_text, quoted
from fed_node.source.engines.forms import Form
from fed_node.source.engines.opening import Opened, viewed
from fed_node.source.engines.place import Place
from fed_node.source.engines.rows import EngineRows
from fed_node.source.places import EngineSource, ParquetSource
from fed_node.source.streamed import StreamedRows
from synth.encoding.cells import Cells
from synth.encoding.contingency import Ints
from synth.encoding.plain_cells import as_numbers
from synth.encoding.records import Records
from synth.layout import LENGTH, Layout
from synth.privacy.coin import Coin

# Columns beside the schema's own. WHOSE is a hash of the owner: by the names themselves an engine would group as their
# collation says, and take "Ann" and "ann" for one person, of whom the one decides which rows of the other are used.
OWNER, WHOSE, NUMBER, LUCK, RANK = "@owner", "@whose", "@number", "@luck", "@rank"
RECORDS = "party_people"


@dataclass(frozen=True, eq=False)
class There:
    """A place (see `place`) of a step that a record may not have: then it lies in the missing cell, the last."""

    place: Place
    there: Expression

    @property
    def out(self) -> Expression:
        return ibis.literal(False)

    def bin(self, of_cell: Ints) -> Expression:
        return ibis.ifelse(self.there, self.place.bin(of_cell), int(of_cell[-1]))


class EnginePeople(EngineRows):
    """One record a person. `read` puts them together in memory, where the engine cannot."""

    def __init__(
        self,
        streamed: StreamedRows,
        source: ParquetSource | EngineSource,
        layout: Layout,
        grid: Cells,
        coin: Coin,
        read: Callable[[], Records],
    ) -> None:
        super().__init__(streamed.codec.schema, streamed.read, streamed.scratch, source)
        self.layout, self.grid, self.coin, self.read_people = layout, grid, coin, read

    def pieces(self) -> Iterator[Records]:
        yield self.read_people()

    def placed(self, engine: Opened, cells: Cells, dialect: Dialect) -> tuple[Opened, dict[str, Place]] | None:
        owner = _owner(engine, self.layout)
        numbered_by = places_of(engine.rows, engine.forms, self.grid, dialect)
        if owner is None or numbered_by is None:
            return None
        used = self._used(engine, owner, numbered_by, dialect)
        if self.layout.steps == 1:
            rows = viewed(engine.backend, used, RECORDS)
            places = places_of(rows, engine.forms, cells, dialect)
        else:
            rows = viewed(engine.backend, self._side_by_side(used), RECORDS)
            places = self._places_of_steps(rows, engine.forms, cells, dialect)
        return None if places is None else (replace(engine, rows=rows), places)

    def _used(
        self, engine: Opened, owner: tuple[Expression, Expression], numbered_by: dict[str, Place], dialect: Dialect
    ) -> str:
        """A query for the rows that the plan uses, each with its rank among its owner's, from 1. Its outer parts are
        written here: Ibis takes seconds to carry thousands of cells' bounds through every layer."""
        name, nobody = owner
        widths = [part.stop - part.start for part in self.grid.slices.values()]
        cells = {
            f"@cell {number}": place.bin(np.arange(width, dtype=np.int64)).cast("int32")
            for number, (place, width) in enumerate(zip(numbered_by.values(), widths, strict=True))
        }
        known = fitting(engine.rows.filter(~nobody), numbered_by)
        inner = engine.backend.compile(known.select(*self.grid.slices, **{OWNER: name}, **cells))
        inner = f"SELECT *, {dialect.sha256.format(quoted(OWNER))} AS {quoted(WHOSE)} FROM ({inner}) AS owned"
        by_cells = ", ".join(map(quoted, cells))
        of_owner = f"OVER (PARTITION BY {quoted(WHOSE)} ORDER BY"
        numbered = f"SELECT *, ROW_NUMBER() {of_owner} {by_cells}) - 1 AS {quoted(NUMBER)} FROM ({inner}) AS placed"
        drawn = f"'{self.coin.prefix}' || CAST({quoted(NUMBER)} AS VARCHAR) || ':' || {quoted(OWNER)}"
        drawn = f"SELECT *, {dialect.sha256.format(drawn)} AS {quoted(LUCK)} FROM ({numbered}) AS numbered"
        ranked = f"SELECT *, ROW_NUMBER() {of_owner} {quoted(LUCK)}) AS {quoted(RANK)} FROM ({drawn}) AS drawn"
        return f"SELECT * FROM ({ranked}) AS ranked WHERE {quoted(RANK)} <= {self.layout.steps}"

    def _side_by_side(self, used: str) -> str:
        """A query for one record a person: what its rows hold, NULL beyond the last of them."""
        whose = f"PARTITION BY {quoted(WHOSE)}"
        steps = [
            f"LEAD({quoted(name)}, {step - 1}) OVER ({whose} ORDER BY {quoted(RANK)}) AS {quoted(column)}"
            for column, (name, step) in self._steps.items()
        ]
        every = f"SELECT {quoted(RANK)}, COUNT(*) OVER ({whose}) AS {quoted(LENGTH)}, {', '.join(steps)}"
        return f"SELECT * FROM ({every} FROM ({used}) AS used) AS steps WHERE {quoted(RANK)} = 1"

    @property
    def _steps(self) -> dict[str, tuple[str, int]]:
        """The table's column and the step, counted from 1, of every column of a record but its length."""
        steps = range(1, self.layout.steps + 1)
        return {self.layout.at(name, step): (name, step) for step in steps for name in self.layout.stepped}

    def _places_of_steps(
        self, records: Expression, forms: Mapping[str, Form | None], cells: Cells, dialect: Dialect
    ) -> dict[str, Place] | None:
        table = self.layout.table
        cut = cells.renamed(table, {name: self.layout.at(name, 1) for name in table.numeric})
        length = place_of(records[LENGTH], Form.WHOLE, LENGTH, cells, dialect)
        found: dict[str, Place | None] = {LENGTH: length}
        for column, (name, step) in self._steps.items():
            place = place_of(records[column], forms[name], name, cut, dialect)
            found[column] = None if place is None else _if_there(place, records[LENGTH] >= step)
        known = {column: place for column in cells.slices if (place := found[column]) is not None}
        return known if len(known) == len(found) else None


def _if_there(place: Place, there: Expression) -> Place:
    if isinstance(place, Compared):
        return replace(place, empty=place.empty | ~there, out=ibis.literal(False))
    return There(place, there)


def _owner(engine: Opened, layout: Layout) -> tuple[Expression, Expression] | None:
    """Whose row it is, as text, and whether it is nobody's; None if only our own reader can tell."""
    name, empty_texts = layout.table.owner, layout.table.missing_values
    assert name is not None
    cell = engine.rows[name]
    match engine.forms[name]:
        case Form.TEXT:
            return cell.strip(), empty_text(cell, empty_texts)
        case Form.WHOLE:
            spelled = [int(number) for number in as_numbers(empty_texts) if float(number).is_integer()]
            empty = cell.isnull() | (cell.isin(spelled).fill_null(False) if spelled else ibis.literal(False))
            return cell.cast("string"), empty
    return None
