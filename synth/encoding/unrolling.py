"""Records back to rows: one row a step, under made-up owners and with a step index."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from synth.encoding.records import Codec, Records, Values
from synth.encoding.scales import Floats, scale_of
from synth.layout import LENGTH, Layout
from synth.schema import Boolean, Categorical, Schema
from synth.sequence import OWNER, STEP

Ints = npt.NDArray[np.int64]


def written(schema: Schema, layout: Layout | None, records: Records, most: int | None = None) -> pd.DataFrame:
    """The synthetic table: records as they are, or a row for each step of each, of the first `most` steps."""
    codec = Codec(schema)
    if layout is None:
        return codec.decode(records)
    rows, owner, step = unrolled(layout, records)
    table = codec.decode(rows)
    keys = {schema.owner or OWNER: owner + 1}
    if layout.ordered:
        keys |= {layout.said.time or STEP: step}
    declared = [name for name in schema.columns if name in keys or name in table.columns]
    order = [*(name for name in keys if name not in declared), *declared]
    return table.assign(**keys)[order].loc[step <= (most or step.max(initial=0))].reset_index(drop=True)


def unrolled(layout: Layout, records: Records) -> tuple[Records, Ints, Ints]:
    """The rows in order, whose each is (numbered from 0) and which step of theirs (from 1).

    Records may have more steps than the model's, of which the last repeat: then a series was continued."""
    steps = 1
    while layout.steps > 1 and layout.at(layout.stepped[0], steps + 1) in records.columns:
        steps += 1
    there = np.ones((len(records), steps), dtype=bool)
    if layout.varies:
        there = np.arange(steps) < records.columns[LENGTH][:, None]
    owner, step = np.nonzero(there)
    columns: dict[str, Values] = {name: records.columns[name][owner] for name in layout.static}
    for name in layout.stepped:
        columns[name] = _levels(layout, name, records, steps)[owner, step]
    rows = Records({name: columns[name] for name in layout.table.released})
    return rows, owner.astype(np.int64), step.astype(np.int64) + 1


def _levels(layout: Layout, name: str, records: Records, steps: int) -> npt.NDArray[np.int64] | Floats:
    """(records, steps); a cell that may not be empty holds what came before it, or after."""
    column = layout.table.released[name]
    found = np.stack([records.columns[layout.at(name, step)] for step in range(1, steps + 1)], axis=1)
    if isinstance(column, Categorical | Boolean):
        codes = found.astype(np.float64)
        codes[found == len(column.labels)] = np.nan
        filled = codes if column.missing else _filled(codes, 0.0)
        return np.where(np.isnan(filled), len(column.labels), filled).astype(np.int64)
    scale, mean = scale_of(column), layout.mean(name)
    levels: Floats = found.astype(np.float64)
    if mean is not None:
        deviations = levels if column.missing else np.nan_to_num(levels)
        levels = records.columns[mean][:, None] + deviations
    elif layout.encoding(name) == "increments":
        levels = _climbed(levels, scale.lowest, scale.highest)
    return scale.snap(levels if column.missing else _filled(levels, (scale.lowest + scale.highest) / 2))


def _climbed(found: Floats, lowest: float, highest: float) -> Floats:
    """Levels from the first one and increments; a step that is unknown is taken for none."""
    levels = np.empty_like(found)
    levels[:, 0] = found[:, 0]
    for step in range(1, found.shape[1]):
        levels[:, step] = np.clip(levels[:, step - 1] + np.nan_to_num(found[:, step]), lowest, highest)
    return levels


def _filled(values: Floats, otherwise: float) -> Floats:
    frame = pd.DataFrame(values).ffill(axis=1).bfill(axis=1)
    filled: Floats = frame.fillna(otherwise).to_numpy(dtype=np.float64)
    return filled
