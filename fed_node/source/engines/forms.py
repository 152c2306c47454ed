"""What an engine's column holds, as far as reading its cells goes; None where only our own reader knows how.

Texts of numbers and times ('1e3', ' 7', '07.03.2020') are read by Python alone: no engine reads all of them alike.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

DIGITS_OF_A_REAL = 15  # so many a float64 holds whichever way it is made


class Form(Enum):
    TRUTH = auto()
    WHOLE = auto()
    REAL = auto()
    SINGLE = auto()  # a real number of 32 bits
    DECIMAL = auto()
    TEXT = auto()
    DAY = auto()
    MOMENT = auto()
    NANOSECOND = auto()  # a moment to the nanosecond
    ZONED = auto()  # a moment in a time zone, which is no time to us


def form_of(dtype: Any) -> Form | None:
    """Of an Ibis type."""
    if dtype.is_timestamp():
        return _moment(dtype)
    if dtype.is_decimal():
        few = dtype.precision is None or dtype.precision <= DIGITS_OF_A_REAL
        return Form.DECIMAL if few else None
    forms = {
        "Boolean": Form.TRUTH,
        "Float64": Form.REAL,
        "Float32": Form.SINGLE,
        "String": Form.TEXT,
        "Date": Form.DAY,
    }
    return Form.WHOLE if dtype.is_integer() else forms.get(type(dtype).__name__)


def _moment(dtype: Any) -> Form:
    if dtype.timezone is not None:
        return Form.ZONED
    return Form.NANOSECOND if (dtype.scale or 0) > 6 else Form.MOMENT
