"""Rows that belong together as arrays (sequences, steps, attributes), attributes in units of their declared ranges."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from synth.encoding.gathering import OwnedRows, gathered
from synth.encoding.records import Values
from synth.encoding.scales import scale_of
from synth.layout import Layout
from synth.metrics.tables import FloatArray
from synth.schema import Boolean, Categorical, Schema
from synth.sequence import SequenceSettings


def stepped_names(schema: Schema) -> list[str]:
    static = schema.sequence.static if schema.sequence else []
    return [name for name in schema.released if name not in static]


def usual_length(owned: OwnedRows, longest: int) -> int:
    """Steps that half of the entities have, at most `longest`: what can be compared."""
    sizes = np.bincount(owned.owner[owned.fits], minlength=1)
    return int(min(np.median(sizes[sizes > 0]), longest)) if (sizes > 0).any() else 0


def whole_windows(schema: Schema, owned: OwnedRows, steps: int) -> FloatArray:
    """Every window of so many steps that is whole, one after the other; codes of labels are numbers, too."""
    names = stepped_names(schema)
    settings = SequenceSettings(entity=schema.owner, length=steps, shortest=steps, encode=dict.fromkeys(names, "level"))
    layout = Layout(schema, settings.model_copy(update={"max_windows": len(owned.owner) + 1}))  # all of them
    records = gathered(layout, owned, _no_coin)
    parts = [
        np.stack([_scaled(schema, name, records.columns[layout.at(name, step + 1)]) for step in range(steps)], axis=1)
        for name in names
    ]
    found: FloatArray = np.stack(parts, axis=2)
    return found[np.isfinite(found).all(axis=(1, 2))]


def _no_coin(_owners: Iterable[str], numbers: Iterable[int]) -> npt.NDArray[np.uint64]:
    """Where every window is used, there is nothing to choose."""
    return np.fromiter(numbers, dtype=np.uint64)


def _scaled(schema: Schema, name: str, values: Values) -> FloatArray:
    column = schema.released[name]
    if isinstance(column, Categorical | Boolean):
        scaled: FloatArray = values / max(len(column.labels) - (not column.missing), 1)
        return scaled
    scale = scale_of(column)
    return (values.astype(np.float64) - scale.lowest) / max(scale.highest - scale.lowest, scale.step)
