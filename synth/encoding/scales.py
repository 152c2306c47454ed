"""The values a numeric column can take, as numbers.

Integers, reals with declared decimals and times with a declared precision are all the same thing to a model: equally
spaced points between public bounds. Times are counted in seconds from the lowest one. Bounds are read at the declared
precision, so that everything `snap` returns can be written to a file and read back unchanged.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from synth.errors import SchemaError
from synth.schema import Boolean, Categorical, Continuous, Datetime, DiscreteColumn, Integer, NumericColumn

Floats = npt.NDArray[np.float64]

SECONDS: dict[str, int] = {"day": 86_400, "hour": 3_600, "minute": 60, "second": 1}
EXACT = 2.0**53  # above it a float64 no longer holds every whole number


@dataclass(frozen=True)
class Scale:
    """lowest, lowest + step, …, highest; a step is `unit` seconds for times, else 10^-decimals."""

    lowest: float
    highest: float
    unit: float
    decimals: int

    @property
    def step(self) -> float:
        return float(self.unit / 10**self.decimals)

    @property
    def points(self) -> int:
        """How many values there are."""
        return round((self.highest - self.lowest) / self.step) + 1

    def round(self, values: Floats) -> Floats:
        """The nearest multiple of the step, bounds not applied. NaN stays NaN, too large is infinite."""
        with np.errstate(over="ignore"):
            return np.round(values / self.unit, self.decimals) * self.unit + 0.0  # + 0.0: no negative zero

    def snap(self, values: Floats) -> Floats:
        """The nearest value of the column. NaN (missing) stays NaN."""
        return np.clip(self.round(values), self.lowest, self.highest)


def scale_of(column: NumericColumn, name: str = "") -> Scale:
    """The scale of a column; refuses one whose values a float64 cannot tell apart."""
    if isinstance(column, Datetime):
        unit = float(SECONDS[column.precision])
        span = (floor_time(column.max, column) - floor_time(column.min, column)).total_seconds()
        return Scale(lowest=0.0, highest=span, unit=unit, decimals=0)
    decimals = column.decimals if isinstance(column, Continuous) else 0
    if max(abs(column.min), abs(column.max)) * 10.0**decimals > EXACT:
        remedy = "declare fewer decimals" if decimals else "declare it an identifier or a categorical column"
        raise SchemaError(
            f"column '{name}': its bounds with {decimals} decimals need more than the 15 digits a number holds; "
            f"{remedy}."
        )
    free = Scale(lowest=-np.inf, highest=np.inf, unit=1.0, decimals=decimals)
    lowest, highest = free.round(np.array([column.min, column.max], dtype=np.float64))
    return Scale(lowest=float(lowest), highest=float(highest), unit=1.0, decimals=decimals)


def floor_time(moment: dt.datetime, column: Datetime) -> dt.datetime:
    """The start of the day, hour, minute or second: a time is kept as the unit it lies in, never rounded up."""
    fields = ["hour", "minute", "second", "microsecond"]
    kept = ["day", "hour", "minute", "second"].index(column.precision)
    return moment.replace(**dict.fromkeys(fields[kept:], 0))  # type: ignore[arg-type]


def code_count(column: DiscreteColumn) -> int:
    """Codes of a discrete column: one per label, and one more for a missing cell where that is declared."""
    return len(column.labels) + int(column.missing)


def is_discrete(column: Categorical | Boolean | Integer | Continuous | Datetime) -> bool:
    return isinstance(column, Categorical | Boolean)
