"""The rows for a release, as records of what the plan protects: of every person no more than it uses.

Whoever has a thousand rows counts no more than somebody with one or, where the plan takes windows, than its few. That
is decided here, by the party's own coin and before anything is computed, never by the aggregator.
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd

from fed_node.source import EngineSource, ParquetSource, Source, open_rows, opened_reader
from fed_node.source.growing import Growing
from fed_node.source.report import Findings, log_changes
from synth.encoding.gathering import OwnedRows, gathered
from synth.encoding.plain_cells import emptied
from synth.encoding.records import Codec, Records
from synth.encoding.rows import Rows
from synth.errors import InputError
from synth.layout import Layout
from synth.plan import Plan
from synth.privacy.coin import Coin
from synth.schema import Schema

WHOLE = "all"  # the owner of rows that nobody owns: one series


def open_units(source: Source, plan: Plan, scratch: Path, coin: Coin) -> Rows:
    """The plan's records; in memory, where people or sequences have to be put together."""
    if plan.layout is None:
        return open_rows(source, plan.table, scratch)
    return read_units(source, plan.layout, coin)


def read_units(source: Source, layout: Layout, coin: Coin) -> Records:
    if isinstance(source, EngineSource) or (isinstance(source, ParquetSource) and source.engine == "duckdb"):
        raise InputError(
            "a plan about people or sequences bounds what each contributes before anything is counted, which an "
            "engine cannot do here: use a source that is read into memory (csv, parquet with engine 'memory', sql), "
            "or a plan whose privacy.unit is 'row' and whose schema has no sequence."
        )
    return gathered(layout, owned_rows(source, layout.table), coin.draws)


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
    return cells.astype("str"), ~empty
