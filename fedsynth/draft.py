"""A first schema from a local file. It is a proposal: what it says was read off data, and a schema is public.

The draft widens numeric bounds to round numbers and lists every label it saw, because it cannot know your code book.
The person who signs the schema must: replace bounds by what is *possible*, labels by what is *defined*.

An identifier is never synthesized and never compared, so a column is drafted as one only on good grounds, and
`left_out` names those columns to whoever shows the draft:

- numbers with fractions and dates are measurements, however distinct;
- whole numbers that never repeat are keys if chance would have repeated some, being so many in so narrow a range
  (row numbers), or if all have the same eight or more digits (record numbers); an income is neither;
- text of more than 64 different values is a key or free text, unless ten rows share each of up to 500.

Numbers and times are recognised as people write them (see `draft_formats`), a few unreadable cells notwithstanding.

Whole numbers are labels where they are few and many rows share them (classes, codes of sex or ward), the target's above
all. 'NA' is an empty cell among numbers and a label among codes of its kind (continents, countries); elsewhere it is
taken for empty, and the column's description says so.

Bounds are those of the numbers that a schema can hold; infinite and longer ones are told when the table is read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pandas as pd

from fedsynth.draft_formats import Numbers, Times, as_numbers, as_times, widened
from fedsynth.draft_panels import panel_of
from synth.encoding.scales import EXACT
from synth.errors import InputError

MOST_CATEGORIES, MOST_LABELS = 64, 500  # labels of any column; of one whose labels many rows share
ROWS_PER_LABEL = 10  # on average, for so many labels to be no free text
FEW_VALUES = 2  # so few numbers or dates are labels
FEW_CODES, FEW_CLASSES = 8, 20  # whole numbers that are labels if rows share them: of any column, of the target
ROWS_PER_CODE = 20  # on average, for whole numbers to be labels
EMPTY = ["", "NA", "NaN", "null"]
LARGEST = 9e15  # the last number of one significant digit that a float64 still tells from its neighbours
MOST_DECIMALS = 12  # that a schema allows
KEY_DIGITS = 8  # whole numbers of at least so many digits, all as long, are record numbers
REPEATS_BY_CHANCE = 10  # so many repeats expected, and none seen: somebody saw to it that there are none


def draft_schema(table: pd.DataFrame, target: str | None) -> dict[str, Any]:
    """Schema content for `table`, whose cells are text."""
    text = {str(name): table[name].astype("string").str.strip() for name in table.columns}
    codes = [name for name, cells in text.items() if _na_is_a_code(cells)]
    empty = EMPTY
    if codes and not any((cells == "NA").any() for name, cells in text.items() if name not in codes):
        empty = [spelling for spelling in EMPTY if spelling != "NA"]
    content: dict[str, Any] = {
        "columns": {name: _draft_column(name, cells, empty, name == target) for name, cells in text.items()}
    }
    if empty != EMPTY:
        content["missing_values"] = empty
    if target is not None:
        content["target"] = target
    return content | panel_of(text, content["columns"])


def left_out(content: dict[str, Any]) -> list[str]:
    """The columns that a draft takes for identifiers."""
    return [name for name, column in content["columns"].items() if column["kind"] == "identifier"]


def lines_to_keep(content: dict[str, Any], table: pd.DataFrame) -> list[str]:
    """For each of them why it is left out, and a line that would keep it."""
    told = []
    for name in left_out(content):
        why, _, line = content["columns"][name]["description"].partition(" To keep it: ")
        if not line:
            labels = table[name].astype("string").str.strip().value_counts().index[:2].tolist()
            line = json.dumps({"kind": "categorical", "categories": [*map(str, labels), "…"], "other": "other"},
                              ensure_ascii=False)  # fmt: skip
        reason = why.removesuffix(": an identifier? It will never leave.").removesuffix(".")
        told.append(f"{name!r}: {reason}. To keep it: {line}")
    return told


def _draft_column(name: str, text: pd.Series, spellings: list[str], is_target: bool) -> dict[str, Any]:
    empty = text.isna() | text.isin(spellings)
    column = _draft_kind(text[~empty], FEW_CLASSES if is_target else FEW_CODES, name)
    if column["kind"] == "categorical" and (text[empty] == "NA").any():
        column["description"] = (
            "'NA' is taken for an empty cell. Is it a label? Then list it here, and not in missing_values."
        )
    return column | ({"missing": True} if empty.any() else {})


def _na_is_a_code(text: pd.Series) -> bool:
    """Whether 'NA' stands among labels of two capital letters: North America, Namibia."""
    labels = text[~text.isna() & ~text.isin(EMPTY)]
    return bool((text == "NA").any() and len(labels) and labels.str.fullmatch("[A-Z]{2}").all())


def _draft_kind(values: pd.Series, few: int, name: str) -> dict[str, Any]:
    distinct = sorted(values.unique().tolist())
    if len(distinct) > FEW_VALUES and not _are_codes(values, len(distinct), few):
        if (times := as_times(values)) is not None:
            return _draft_time(times)
        if (numbers := as_numbers(values)) is not None:
            return _draft_number(name, numbers)
    if len(distinct) > MOST_LABELS or (
        len(distinct) > MOST_CATEGORIES and len(values) < ROWS_PER_LABEL * len(distinct)
    ):
        once = len(distinct) == len(values)
        return _identifier("Every text occurs once" if once else f"{len(distinct)} different texts, perhaps free text")
    return {"kind": "categorical", "categories": distinct or ["none"]}


def _draft_time(times: Times) -> dict[str, Any]:
    low, high = widened(times.values)
    finest = str if times.options.get("precision", "day") != "day" else (lambda moment: str(moment.date()))
    remarks = [*([times.remark] if times.remark else []), *_bad_cells(times.bad, "times")]
    return {"kind": "datetime", "min": finest(low), "max": finest(high)} | times.options | _remarked(remarks, times.bad)


def _draft_number(name: str, found: Numbers) -> dict[str, Any]:
    numbers = found.values.dropna()
    held, remarks = numbers[numbers.abs() <= LARGEST], _remarked(_bad_cells(found.bad, "numbers"), found.bad)
    if held.empty:
        return _identifier("Numbers of more than 15 digits")
    low, high = _rounder_bounds(float(held.min()), float(held.max()))
    if (held == held.round()).all():
        if _are_keys(held):
            return _identifier(
                "Whole numbers that never repeat, one after another or as long as a record number",
                {"kind": "integer", "min": int(low), "max": int(high)},
            )
        return {"kind": "integer", "min": int(low), "max": int(high)} | found.options | remarks
    if low == high:
        raise InputError(
            f"column '{name}': its numbers are the same to {MOST_DECIMALS} decimals, the most a schema keeps; write "
            "them in a smaller unit"
        )
    room = math.floor(math.log10(EXACT / max(abs(low), abs(high))))
    decimals = min(_decimals(found.texts), MOST_DECIMALS, room)
    return {"kind": "continuous", "min": low, "max": high, "decimals": decimals} | found.options | remarks


def _bad_cells(bad: int, noun: str) -> list[str]:
    return [f"A few cells are no {noun}; they become empty."] if bad else []


def _remarked(remarks: list[str], bad: int) -> dict[str, Any]:
    return ({"description": " ".join(remarks)} if remarks else {}) | ({"missing": True} if bad else {})


def _are_codes(values: pd.Series, distinct: int, few: int) -> bool:
    """Whole numbers, written without a point, so few and so often the same that they are labels."""
    shared = distinct <= few and len(values) >= ROWS_PER_CODE * distinct
    return bool(shared and values.str.fullmatch(r"-?\d{1,9}").all())


def _are_keys(whole: pd.Series) -> bool:
    """Whether these whole numbers look made to be different (see the top of this file)."""
    if len(whole) <= MOST_CATEGORIES or not whole.is_unique:
        return False
    low, high = int(whole.min()), int(whole.max())
    repeats_expected = len(whole) ** 2 / (2 * (high - low + 1))  # if spread evenly; any other way there are more
    return repeats_expected > REPEATS_BY_CHANCE or (low > 0 and len(str(low)) == len(str(high)) >= KEY_DIGITS)


def _decimals(values: pd.Series) -> int:
    """The most digits behind the point that any value has, written out: '1.9e-10' has eleven."""
    parts = values.str.extract(r"(?:\.(\d*))?(?:[eE]([+-]?\d+))?$")
    behind = parts[0].str.len().fillna(0).astype("int64") - pd.to_numeric(parts[1]).fillna(0).astype("int64")
    return max(0, int(behind.max()))


def _identifier(why: str, instead: dict[str, Any] | None = None) -> dict[str, Any]:
    keep = "" if instead is None else f" To keep it: {json.dumps(instead)}"
    return {"kind": "identifier", "description": f"{why}: an identifier? It will never leave.{keep}"}


def _rounder_bounds(least: float, most: float) -> tuple[float, float]:
    """The nearest numbers outside with one significant digit, of themselves or of their distance: 17 … 38 → 10 … 40,
    1963 … 2015 → 1960 … 2020, 44.89 … 45.05 → 44.8 … 45.1."""
    apart = _unit(most - least)
    low = max(_multiple(least, unit, math.floor) for unit in {_unit(least), apart})
    high = min(_multiple(most, unit, math.ceil) for unit in {_unit(most), apart})
    return low, high


def _unit(value: float) -> float:
    """Of its first digit; 0 where it has none that a schema keeps."""
    return 0.0 if round(value, MOST_DECIMALS) == 0 else 10.0 ** math.floor(math.log10(abs(value)))


def _multiple(value: float, unit: float, towards: Callable[[float], int]) -> float:
    if unit == 0:
        return 0.0 if round(value, MOST_DECIMALS) == 0 else value
    return float(round(towards(round(value / unit, MOST_DECIMALS)) * unit, MOST_DECIMALS))
