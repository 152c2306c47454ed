"""Tables split among pretend parties so that nobody, and no series, is in two of them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fedsynth.simulation.partition import Partition, partition
from synth.errors import InputError
from synth.plan import Plan
from synth.schema import Schema


def partition_units(table: pd.DataFrame, plan: Plan, how: Partition, seed: int) -> dict[str, pd.DataFrame]:
    """Parts as `partition` makes them of rows, or of people with all their rows; one long series is cut where it is."""
    names, schema = [party.name for party in plan.parties], plan.table
    if plan.layout is None:
        return partition(table, names, how, schema.target, seed)
    if schema.owner is None:
        if how != "iid":
            raise InputError(f"one series can only be cut into equal parts; use --partition iid, not {how}")
        ends = np.linspace(0, len(table), len(names) + 1).astype(int)
        return {name: table.iloc[a:b] for name, a, b in zip(names, ends[:-1], ends[1:], strict=True)}
    if schema.owner not in table.columns:
        raise InputError(f"the table has no column '{schema.owner}', which says whose row it is")
    people = partition(table.drop_duplicates(schema.owner), names, how, schema.target, seed)
    return {name: table[table[schema.owner].isin(part[schema.owner])] for name, part in people.items()}


def units_in(table: pd.DataFrame, schema: Schema) -> int:
    """Rows, or people where a person is what a plan over this schema protects."""
    is_series = schema.sequence is not None and schema.sequence.unit == "step"
    return len(table) if schema.owner is None or is_series else int(table[schema.owner].nunique())
