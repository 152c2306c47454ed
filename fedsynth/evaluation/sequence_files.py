"""Sequences in files, read for comparison: whose rows they are is read there, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fed_node.source import Source
from fed_node.source.units import owned_rows
from synth.metrics.evaluation_views import SequenceView
from synth.metrics.panel_arrays import stepped_names, usual_length, whole_windows
from synth.metrics.tables import FloatArray
from synth.schema import Identifier, Integer, Schema
from synth.sequence import OWNER, STEP

STEP_INDEX = Integer(min=1, max=10**9)


def sequences_in(
    schema: Schema, real: Sequence[Source], synthetic: Source, holdout: Source | None, seed: int = 0
) -> SequenceView | None:
    """None where the schema has no sequence, or where there are too few to compare."""
    if schema.sequence is None:
        return None
    from synth.metrics.sequence_view import sequence_view  # has networks, which tables of rows alone do not need

    parts = [owned_rows(source, schema) for source in real]
    made = owned_rows(synthetic, _of_synthetic(schema))
    steps = min(usual_length(each, schema.sequence.length) for each in (*parts, made))
    if steps < 2:
        return None
    windows: list[FloatArray] = [whole_windows(schema, part, steps) for part in parts]
    unseen = None if holdout is None else whole_windows(schema, owned_rows(holdout, schema), steps)
    drawn = whole_windows(_of_synthetic(schema), made, steps)
    return sequence_view(stepped_names(schema), np.concatenate(windows), drawn, unseen, seed)


def _of_synthetic(schema: Schema) -> Schema:
    """A synthetic table has owners and a step index, whatever real ones have."""
    said = schema.sequence
    assert said is not None
    owner, step = schema.owner or OWNER, said.time or STEP
    columns = schema.columns | {owner: Identifier(), step: STEP_INDEX}
    return schema.model_copy(
        update={"columns": columns, "sequence": said.model_copy(update={"entity": owner, "time": step})}
    )
