"""The part of a plan's schema that one party's file is held against, where parties hold different columns."""

from __future__ import annotations

from synth.plan import Plan
from synth.schema import Identifier, Schema


def own_table(plan: Plan, party: str) -> Schema:
    """The columns that the party holds; the whole schema where everybody holds all. The others of the schema may be in
    its file as well, as the key is, and are not read: an institution has more columns than it brings to a plan."""
    held = plan.columns_of(party)
    if plan.linkage is None or not held:
        return plan.table
    columns = {name: column if name in held else Identifier() for name, column in plan.table.columns.items()}
    target = plan.table.target if plan.table.target in held else None
    return plan.table.model_copy(update={"columns": columns, "target": target})
