"""Whether a table is a panel: several rows for each of many people, in the order of some column.

A column says whose rows they are if it is called like a key ('patient_id', not 'patient_class') and its values repeat;
free text that repeats is nobody's. Another orders them if no person has the same value twice; where there are several
such columns, the one with most values in common between people (months, visit numbers) does. What never changes within
a person is static. All of this is a proposal, and public once it is shared, like the rest of a draft.
"""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

FEWEST_PEOPLE = 10
FEWEST_ROWS = 1.5  # of a person, on average
MOST_LENGTH = 24
OWNERS = "subject|patient|client|customer|person|member|account"
LIKE_A_KEY = re.compile(rf"(^|[_ .-])(?i:id|nr|no|key|ref|mrn)$|[a-z](ID|Id|Nr|No)$|^(?i:({OWNERS})([_ ]?code)?)$")
LIKE_AN_IDENTIFIER = re.compile(r"(id|nr|num|number|key|code|ref|mrn)$", re.IGNORECASE)  # of columns never released
TIMES = ("integer", "datetime")


def panel_of(text: dict[str, pd.Series], columns: dict[str, Any]) -> dict[str, Any]:
    """`subject`, and `sequence` where the rows have an order, for a draft; nothing if this is no panel. The subject's
    column becomes an identifier."""
    owner = next((name for name, cells in text.items() if _repeats(cells) and _is_key(name, columns[name])), None)
    if owner is None:
        return {}
    columns[owner] = {"kind": "identifier", "description": "Whose row it is; read, and never released."}
    by_owner = pd.DataFrame(text).groupby(text[owner], sort=False)
    times = [name for name in columns if _is_time(columns[name], text[name]) and _orders(text[name], text[owner])]
    if not times:
        return {"subject": owner}
    time = min(times, key=lambda name: text[name].nunique())
    if columns[time]["kind"] == "categorical":  # few whole numbers, which would else be labels
        whole = text[time].astype("int64")
        columns[time] = {"kind": "integer", "min": int(whole.min()), "max": int(whole.max())}
    sizes = by_owner.size()
    length = min(max(int(sizes.quantile(0.95)), 2), MOST_LENGTH)
    changes = by_owner.nunique(dropna=False).max()
    static = [name for name in text if name not in (owner, time) and changes[name] <= 1]
    released = [name for name in text if columns[name]["kind"] != "identifier" and name != time]
    if set(released) <= set(static):
        return {"subject": owner}
    found: dict[str, Any] = {"entity": owner, "time": time, "length": length}
    if sizes.min() >= length:
        found["shortest"] = length
    if static := [name for name in static if name in released]:
        found["static"] = static
    return {"sequence": found}


def _repeats(cells: pd.Series) -> bool:
    people = cells.nunique()
    return bool(people >= FEWEST_PEOPLE and len(cells) >= FEWEST_ROWS * people)


def _is_key(name: str, column: dict[str, Any]) -> bool:
    if LIKE_A_KEY.search(name):
        return column["kind"] in ("integer", "categorical", "identifier")
    return column["kind"] == "identifier" and LIKE_AN_IDENTIFIER.search(name) is not None


def _is_time(column: dict[str, Any], cells: pd.Series) -> bool:
    return column["kind"] in TIMES or (
        column["kind"] == "categorical" and bool(cells.str.fullmatch(r"\d{1,9}").fillna(False).all())
    )


def _orders(cells: pd.Series, owner: pd.Series) -> bool:
    return not pd.DataFrame({"owner": owner, "time": cells}).duplicated().any()
