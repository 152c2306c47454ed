"""All places of a table, and the counts of its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fed_node.source.engines.dialects import DIALECTS, Dialect
from fed_node.source.engines.expressions import Expression, any_of
from fed_node.source.engines.forms import Form
from fed_node.source.engines.grouping import grouped
from fed_node.source.engines.histograms import histograms
from fed_node.source.engines.labels import label_place
from fed_node.source.engines.moments import moment_place
from fed_node.source.engines.numbers import number_place
from fed_node.source.engines.place import Place
from synth.encoding.bins import Bins
from synth.encoding.cells import Cells
from synth.encoding.contingency import Clique, Ints
from synth.schema import Boolean, Categorical, Datetime


def places_of(
    rows: Expression, forms: Mapping[str, Form | None], cells: Cells, dialect: Dialect
) -> dict[str, Place] | None:
    """The place of every released column; None if the engine cannot tell one as we do."""
    found = {}
    for name in cells.slices:
        place = place_of(rows[name], forms[name], name, cells, dialect)
        if place is None:
            return None
        found[name] = place
    return found


def place_of(cell: Expression, form: Form | None, name: str, cells: Cells, dialect: Dialect) -> Place | None:
    column, empty_texts = cells.schema.released[name], cells.schema.missing_values
    if form is None:
        return None
    if isinstance(column, Categorical | Boolean):
        return label_place(cell, form, column, empty_texts)
    if isinstance(column, Datetime):
        return moment_place(cell, form, name, cells, dialect)
    return number_place(cell, form, name, cells, dialect, empty_texts)


def fitting(rows: Expression, places: Mapping[str, Place]) -> Expression:
    """The rows that are not left out."""
    return rows.filter(~any_of([place.out for place in places.values()]))


def count_histograms(engine: Any, rows: Expression, places: Mapping[str, Place], cells: Cells) -> Ints:
    kept = fitting(rows, places)
    if DIALECTS[engine.name].has_histogram:
        return histograms(kept, places, cells)
    widths = [part.stop - part.start for part in cells.slices.values()]
    bins = [place.bin(np.arange(width, dtype=np.int64)) for place, width in zip(places.values(), widths, strict=True)]
    return grouped(engine, kept, bins, widths, [(column,) for column in range(len(widths))])


def count_tables(
    engine: Any, rows: Expression, places: Mapping[str, Place], bins: Bins, names: list[str], cliques: Sequence[Clique]
) -> Ints:
    asked = [places[name].bin(bins.of(name)) for name in names]
    return grouped(engine, fitting(rows, places), asked, [bins.size(name) for name in names], cliques)
