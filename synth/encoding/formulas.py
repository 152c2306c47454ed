"""Labels that a spreadsheet would carry out instead of showing.

Every text in a synthetic table is a label or a column's name from the schema, so nobody's row can bring a formula into
it; whoever wrote the schema, or the model file, can. Escaping would change the labels: the table would no longer fit
its own schema. So such a schema is not carried out in the first place, unless its plan says that these are words.
Meant are formulas that can act (call, link, reach outside): '-', '+ve' and '=0' are ordinary labels of laboratories.
"""

from __future__ import annotations

from synth.schema import Schema

BEGINS = ("=", "+", "-", "@", "\t", "\r", "\n")
ACTS = frozenset("(|!")  # calls, other programs, other sheets


def formulas_in(schema: Schema) -> list[str]:
    """Where there are some: names of columns, as they are shown to nobody."""
    found = []
    for name, column in schema.released.items():
        texts = [name, *getattr(column, "labels", [])]
        if any(text.startswith(BEGINS) and ACTS & set(text) for text in texts):
            found.append(name)
    return found
