"""The part of a plan's schema that one party's file is held against, where parties hold different columns."""

from __future__ import annotations

from synth.plan import Plan
from synth.schema import Schema


def own_table(plan: Plan, party: str) -> Schema:
    """The columns that the party holds, and the key; the whole schema where everybody holds all."""
    held = plan.columns_of(party)
    if plan.linkage is None or not held:
        return plan.table
    columns = {name: column for name, column in plan.table.columns.items() if name in (plan.linkage.key, *held)}
    target = plan.table.target if plan.table.target in held else None
    return plan.table.model_copy(update={"columns": columns, "target": target})
