"""What rows are asked for: `cost > 1000`, `sex = f`, `age in 18..65`, `ward in a, b`, `admitted >= 2020-03-01`.

Every condition on a column narrows what the ones before left; where nothing is left that the schema allows, they
contradict each other, and that is said before anything is drawn. Numbers and times are kept as ranges of values, labels
as sets. A day among finer times stands for all of it.
"""

from __future__ import annotations

import csv
import datetime as dt
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from synth.encoding.records import Records
from synth.encoding.scales import Scale, floor_time, scale_of
from synth.errors import InputError
from synth.schema import Datetime, NumericColumn, Schema

Mask = npt.NDArray[np.bool_]
Range = tuple[float, float]  # both ends included
OPERATORS = ("<=", ">=", "!=", "=", "<", ">")
FORMS = "COLUMN = VALUE (or !=, <, <=, >, >=), COLUMN in A, B, C, or COLUMN in LOW..HIGH"
CLOSE = 1e-6  # of a step; a value is a multiple of the step
Where = Mapping[str, object] | Sequence[str] | str


@dataclass
class Conditions:
    """What is left of each column's domain."""

    schema: Schema
    labels: dict[str, set[str]] = field(default_factory=dict)
    ranges: dict[str, list[Range]] = field(default_factory=dict)

    @property
    def fixed(self) -> dict[str, str]:
        """Columns with one label left: what a model can be asked for outright."""
        return {name: next(iter(left)) for name, left in self.labels.items() if len(left) == 1}

    def hold(self, records: Records) -> Mask:
        """Which rows are asked for. An empty cell is no value, so it fulfils no condition."""
        kept = np.ones(len(records), dtype=bool)
        for name, left in self.labels.items():
            all_labels = self.schema.discrete[name].labels
            kept &= np.isin(records.columns[name], [all_labels.index(label) for label in left])
        for name, ranges in self.ranges.items():
            values, close = records.columns[name], CLOSE * scale_of(self.schema.numeric[name]).step
            kept &= np.logical_or.reduce([(values >= low - close) & (values <= high + close) for low, high in ranges])
        return kept

    def narrow(self, name: str, operator: str, words: list[str], said: str) -> None:
        if name in self.schema.discrete:
            self._narrow_labels(name, operator, words, said)
        else:
            self._narrow_ranges(name, operator, words, said)

    def _narrow_labels(self, name: str, operator: str, words: list[str], said: str) -> None:
        known = self.schema.discrete[name].labels
        if operator not in ("=", "!=", "in"):
            raise InputError(f"'{said}': '{name}' has labels, which have no order; use = or 'in'")
        if strange := [word for word in words if word not in known]:
            raise InputError(f"'{said}': {strange[0]!r} is no label of '{name}'; its labels are: {_listed(known)}")
        meant = set(known) - set(words) if operator == "!=" else set(words)
        left = self.labels.get(name, set(known)) & meant
        if not left:
            raise _contradiction(name, said)
        self.labels[name] = left

    def _narrow_ranges(self, name: str, operator: str, words: list[str], said: str) -> None:
        column = self.schema.numeric[name]
        scale = scale_of(column, name)
        meant = [part for word in words for part in _ranges(operator, _span(word, column, name, said), scale)]
        before = self.ranges.get(name, [(scale.lowest, scale.highest)])
        both = [(max(a, c), min(b, d)) for a, b in before for c, d in meant]
        left = [part for part in both if _has_value(part, scale)]
        if not left:
            if name in self.ranges:
                raise _contradiction(name, said)
            raise InputError(f"'{said}': no value of '{name}' is; the schema allows {column.min} to {column.max}")
        self.ranges[name] = left


def parse_conditions(where: Where, schema: Schema) -> Conditions:
    """From sentences, or from a mapping of columns to a value, a list of values or a pair (low, high)."""
    found = Conditions(schema)
    for name, operator, words, said in _sentences(where, schema):
        found.narrow(name, operator, words, said)
    return found


def _sentences(where: Where, schema: Schema) -> Iterable[tuple[str, str, list[str], str]]:
    if isinstance(where, Mapping):
        for name, value in where.items():
            said = f"{name}: {value}"
            _require_column(str(name), schema, said)
            if isinstance(value, tuple) and len(value) == 2 and name in schema.numeric:
                yield name, "in", [f"{value[0]}..{value[1]}"], said
            elif isinstance(value, list | tuple | set | frozenset):
                yield name, "in", [str(each) for each in value], said
            else:
                yield name, "=", [str(value)], said
        return
    for text in [where] if isinstance(where, str) else where:
        yield *_parsed(text, schema), text


def _parsed(text: str, schema: Schema) -> tuple[str, str, list[str]]:
    """The column is the longest name that the text begins with, so that names may hold spaces and signs."""
    stripped = text.strip()
    fitting = [name for name in schema.columns if stripped.startswith(name)]
    for name in sorted(fitting, key=len, reverse=True):
        rest = stripped[len(name) :].strip()
        operator = next((sign for sign in OPERATORS if rest.startswith(sign)), None)
        if operator is not None and rest[len(operator) :].strip():
            _require_column(name, schema, text)
            return name, operator, [rest[len(operator) :].strip()]
        if match := re.match(r"in\s+(.+)", rest):
            _require_column(name, schema, text)
            cells = next(csv.reader([match.group(1).strip().strip("{}[]()")], skipinitialspace=True))
            return name, "in", [cell.strip() for cell in cells]
    name = re.split(r"\s*(?:<=|>=|!=|=|<|>|\sin\s)", stripped)[0]
    if not fitting and name != stripped:
        _require_column(name, schema, text)
    raise InputError(f"'{text}' is no condition; write {FORMS}")


def _require_column(name: str, schema: Schema, said: str) -> None:
    if name not in schema.released:
        why = "is an identifier, and never synthesized" if name in schema.columns else "is no column"
        raise InputError(f"'{said}': '{name}' {why}; the columns are: {_listed(list(schema.released))}")


def _span(word: str, column: NumericColumn, name: str, said: str) -> Range:
    """The values that a word stands for: one, those of a day, or those from one to another."""
    low, dots, high = word.partition("..")
    if dots:
        if not low.strip() or not high.strip():
            raise InputError(f"'{said}': a range needs both ends, LOW..HIGH; else use >= or <=")
        return _span(low, column, name, said)[0], _span(high, column, name, said)[1]
    if isinstance(column, Datetime):
        return _moment(word.strip(), column, said)
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"'{said}': {word!r} is no number, and '{name}' holds numbers")
    return number, number


def _moment(word: str, column: Datetime, said: str) -> Range:
    lowest = floor_time(column.min, column)
    for read in (dt.datetime.fromisoformat, lambda text: dt.datetime.strptime(text, column.format)):
        try:
            moment = read(word)
        except ValueError:
            continue
        if moment.tzinfo is None:
            whole_day = re.fullmatch(r"\d{4}-\d\d-\d\d", word) is not None
            length = dt.timedelta(days=1) - dt.timedelta(seconds=1) if whole_day else dt.timedelta()
            return (moment - lowest).total_seconds(), (moment + length - lowest).total_seconds()
    raise InputError(f"'{said}': {word!r} is no time; write 2020-03-01, 2020-03-01 14:30, or as the files do")


def _ranges(operator: str, span: Range, scale: Scale) -> list[Range]:
    low, high = span
    beside = scale.step * 2 * CLOSE
    match operator:
        case "<":
            return [(-math.inf, low - beside)]
        case "<=":
            return [(-math.inf, high)]
        case ">":
            return [(high + beside, math.inf)]
        case ">=":
            return [(low, math.inf)]
        case "!=":
            return [(-math.inf, low - beside), (high + beside, math.inf)]
    return [span]


def _has_value(part: Range, scale: Scale) -> bool:
    """Whether a multiple of the step lies in it, within the column's bounds."""
    low, high = (max(part[0], scale.lowest), min(part[1], scale.highest))
    first = math.ceil((low - scale.lowest) / scale.step - CLOSE)
    return first <= math.floor((high - scale.lowest) / scale.step + CLOSE)


def _contradiction(name: str, said: str) -> InputError:
    return InputError(f"'{said}' contradicts what was asked of '{name}' before: no row can have both; drop one of them")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:12])
    return shown if len(names) <= 12 else f"{shown}, … ({len(names)} in all)"
