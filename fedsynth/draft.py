"""A first schema from a local file. It is a proposal: what it says was read off data, and a schema is public.

The draft widens numeric bounds to round numbers and lists every label it saw, because it cannot know your code book.
The person who signs the schema must: replace bounds by what is *possible*, labels by what is *defined*.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pandas as pd

MOST_CATEGORIES = 64  # beyond that a text column is probably free text or an identifier
FEW_WHOLE_NUMBERS = 2


def draft_schema(table: pd.DataFrame, target: str | None) -> dict[str, Any]:
    """Schema content for `table`, whose cells are text."""
    columns = {str(name): _draft_column(table[name]) for name in table.columns}
    content: dict[str, Any] = {"columns": columns}
    if target is not None:
        content["target"] = target
    return content


def _draft_column(cells: pd.Series) -> dict[str, Any]:
    text = cells.astype("string").str.strip()
    empty = text.isna() | text.isin(["", "NA", "NaN", "null"])
    values = text[~empty]
    column = _draft_kind(values)
    return column | ({"missing": True} if empty.any() else {})


def _draft_kind(values: pd.Series) -> dict[str, Any]:
    numbers = pd.to_numeric(values, errors="coerce")
    distinct = sorted(values.unique().tolist())
    if len(distinct) == len(values) > MOST_CATEGORIES:
        return {"kind": "identifier", "description": "Every value occurs once: an identifier? It will never leave."}
    if numbers.notna().all() and len(distinct) > FEW_WHOLE_NUMBERS:
        return _draft_number(values, numbers)
    if len(distinct) > FEW_WHOLE_NUMBERS and pd.to_datetime(values, errors="coerce", format="%Y-%m-%d").notna().all():
        return {"kind": "datetime", "min": min(distinct), "max": max(distinct)}
    if len(distinct) > MOST_CATEGORIES:
        return {"kind": "identifier", "description": f"{len(distinct)} different texts: free text or an identifier?"}
    return {"kind": "categorical", "categories": distinct or ["none"]}


def _draft_number(values: pd.Series, numbers: pd.Series) -> dict[str, Any]:
    low, high = float(numbers.min()), float(numbers.max())
    if (numbers == numbers.round()).all():
        return {"kind": "integer", "min": int(_rounder(low, math.floor)), "max": int(_rounder(high, math.ceil))}
    decimals = int(values.str.extract(r"\.(\d+)$")[0].str.len().max())
    return {
        "kind": "continuous",
        "min": _rounder(low, math.floor),
        "max": _rounder(high, math.ceil),
        "decimals": min(decimals, 12),
    }


def _rounder(value: float, towards: Callable[[float], int]) -> float:
    """The next number with one significant digit beyond `value`: 17 → 10 or 20, 0.037 → 0.03 or 0.04."""
    if value == 0:
        return 0.0
    unit = 10.0 ** math.floor(math.log10(abs(value)))
    return round(towards(value / unit) * unit, 12)
