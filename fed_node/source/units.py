"""The rows for a release, as records of what the plan protects: of every person no more than it uses.

Whoever has a thousand rows counts no more than somebody with one or, where the plan takes windows, than its few. That
is decided here, by the party's own coin and before anything is computed, never by the aggregator.
"""

from __future__ import annotations

import logging
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd

from fed_node.source import NO_ENGINES, EngineSource, ParquetSource, Source, engine_source, open_rows, opened_reader
from fed_node.source.growing import Growing
from fed_node.source.report import Findings, log_changes
from fed_node.source.streamed import StreamedRows
from synth.encoding.gathering import OwnedRows, gathered
from synth.encoding.plain_cells import BLANKS, emptied
from synth.encoding.records import Codec, Records
from synth.encoding.rows import Rows
from synth.errors import InputError
from synth.grid import table_grid
from synth.layout import Layout
from synth.plan import Plan
from synth.privacy.coin import Coin
from synth.schema import Schema

log = logging.getLogger("fed_node")
WHOLE = "all"  # the owner of rows that nobody owns: one series


def open_units(source: Source, plan: Plan, scratch: Path, coin: Coin) -> Rows:
    """The plan's records: counted by the engine that holds the rows, where each is one person's, else in memory."""
    if plan.layout is None:
        return open_rows(source, plan.table, scratch)
    counted = engine_source(source, plan.table)
    if counted is not None and not plan.layout.ordered:
        return _counted_people(counted, plan, plan.layout, scratch, coin)
    if isinstance(source, EngineSource) or (isinstance(source, ParquetSource) and source.engine == "duckdb"):
        raise InputError(
            "a plan about sequences puts the rows of every window together before anything is counted, which an engine "
            "cannot do here: use a source that is read into memory (csv, parquet with engine 'memory', sql)."
        )
    return read_units(source, plan, plan.layout, coin)


def _counted_people(
    source: ParquetSource | EngineSource, plan: Plan, layout: Layout, scratch: Path, coin: Coin
) -> Rows:
    def read() -> Records:
        return read_units(source, plan, layout, coin)

    reader = opened_reader(source, plan.table)
    scratch.mkdir(mode=0o700, exist_ok=True)
    try:
        from fed_node.source.engines.people import EnginePeople
    except ImportError:
        if isinstance(source, EngineSource) or source.engine is not None:
            raise InputError(NO_ENGINES) from None
        log.warning("%s", NO_ENGINES)
        return read()
    streamed = StreamedRows(plan.table, lambda: reader, scratch)
    return EnginePeople(streamed, source, layout, table_grid(plan), coin, read)


def read_units(source: Source, plan: Plan, layout: Layout, coin: Coin) -> Records:
    return gathered(layout, owned_rows(source, layout.table), coin.draws, table_grid(plan))


def owned_rows(source: Source, schema: Schema) -> OwnedRows:
    """Every row with its owner and its time. A row without either belongs to nobody, and is left out."""
    codec, reader = Codec(schema), opened_reader(source, schema)
    findings, names = Findings(reader), [*schema.released, *schema.keys]
    columns = {name: Growing() for name in schema.released}
    times, fits, whose = Growing(), Growing(), list[pd.Series]()
    for frame in chain([pd.DataFrame(columns=names, dtype="str")], reader.frames(names)):
        rows, problems, unfit = codec.fit_all(frame)
        findings.add(problems, len(frame))
        for name, values in rows.columns.items():
            columns[name].extend(values)
        owner, known = _owners(frame, schema)
        time = codec.times(frame)
        times.extend(time)
        fits.extend(~unfit & known & ~np.isnan(time))
        whose.append(owner)
    log_changes(findings)
    places, found = pd.factorize(pd.concat(whose, ignore_index=True), use_na_sentinel=False)
    rows = Records({name: column.values for name, column in columns.items()})
    placed = ~np.isnan(times.values)  # a row at no time is at no place
    kept = np.flatnonzero(placed)
    when = times.values[kept] if schema.sequence is not None and schema.sequence.time is not None else None
    names = [str(each) for each in found]
    return OwnedRows(rows.take(kept), names, places[kept].astype(np.int64), when, fits.values[kept])


def _owners(frame: pd.DataFrame, schema: Schema) -> tuple[pd.Series, np.ndarray]:
    if schema.owner is None:
        return pd.Series([WHOLE] * len(frame), dtype="str"), np.ones(len(frame), dtype=bool)
    cells, empty = emptied(frame[schema.owner], schema.missing_values, ("False", "True"))
    return cells.astype("str").str.strip(BLANKS), ~empty
