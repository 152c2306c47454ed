"""The public description of the table that all parties hold rows of.

The consortium writes it, every party approves it, and everybody may read it: so domains (categories, bounds) come
from code books and clinical limits, never from anybody's rows. A domain read off the data is itself a release, and
the commonest hole in published private synthesizers.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from synth.printable import quoted, unprintable
from synth.sequence import OWNER, STEP, SequenceSettings, problem_of_rows
from synth.strict import Strict as Strict
from synth.strict import digest_of as digest_of
from synth.strict import is_absent

Unfit = Literal["nearest", "other", "missing", "leave-out"]


class _Column(Strict):
    """Whether a cell fits must never show outside the party, so every cell that does not has something it becomes.

    `unfit` says what, where the rule of `synth.encoding.fallbacks` is not wanted.
    """

    description: str = Field("", description="What the column means, for people.")
    missing: bool = Field(
        False, description="Whether cells may be empty. Elsewhere the row of an empty cell is left out."
    )

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if getattr(self, "unfit", None) == "missing" and not self.missing:
            raise ValueError("'unfit: missing' needs 'missing: true'; allow empty cells or choose another rule")
        return self


class Categorical(_Column):
    """One of a declared list of labels."""

    kind: Literal["categorical"] = "categorical"
    categories: list[str] = Field(min_length=1, description="Every label that may occur, in a fixed public order.")
    other: str | None = Field(
        None, description="A label that stands for every undeclared value. Without it such a value does not fit."
    )
    unfit: Literal["other", "missing", "leave-out"] | None = Field(
        None,
        exclude_if=is_absent,
        description="What a cell that does not fit becomes: the label 'other', an empty cell, or nothing, its row "
        "being left out. Default: 'other' for undeclared labels if declared, else empty if allowed, else the row is "
        "left out.",
    )

    @field_validator("categories", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        # YAML reads `0` as a number and `no` as a boolean; labels are text.
        return [str(item) for item in value] if isinstance(value, list) else value

    @model_validator(mode="after")
    def _distinct(self) -> Categorical:
        if len(set(self.labels)) != len(self.labels):
            raise ValueError("categories (with 'other') must be distinct; remove the repeated label")
        if self.unfit == "other" and self.other is None:
            raise ValueError("'unfit: other' needs an 'other' label; declare one or choose another rule")
        return self

    @property
    def labels(self) -> list[str]:
        """Labels by code; `other` is the last one."""
        return self.categories + ([self.other] if self.other is not None else [])


class Boolean(_Column):
    """Yes or no."""

    kind: Literal["boolean"] = "boolean"
    false: str = Field("False", description="How 'no' is written in the files.")
    true: str = Field("True", description="How 'yes' is written in the files.")
    unfit: Literal["missing", "leave-out"] | None = Field(
        None,
        exclude_if=is_absent,
        description="What a cell that does not fit becomes: an empty cell, or nothing, its row being left out. "
        "Default: empty if allowed, else the row is left out.",
    )

    @field_validator("false", "true", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        return str(value)

    @model_validator(mode="after")
    def _distinct(self) -> Boolean:
        if self.false == self.true:
            raise ValueError("'false' and 'true' must be written differently; with one value it is no boolean")
        return self

    @property
    def labels(self) -> list[str]:
        return [self.false, self.true]


_NUMBER_RULE = (
    "What a cell that does not fit becomes: the nearest value within the bounds, an empty cell, or nothing, its row "
    "being left out. Default: the nearest value for what lies outside or is not whole; what is no number or time, or "
    "infinite, becomes empty if allowed, else the row is left out."
)


Written = Literal["1,234.5", "1.234,5", "1 234,5", "1,5"]
_WRITTEN = "How the files write numbers, if not with a point alone. The synthetic table has plain numbers."
_AFFIX = "Text that stands before or behind every number in the files: a currency or a unit."
LARGEST_WHOLE = 10**18  # cells are counted in 64 bits


class Integer(_Column):
    """A whole number within public bounds."""

    kind: Literal["integer"] = "integer"
    min: int = Field(ge=-LARGEST_WHOLE, le=LARGEST_WHOLE, description="Smallest value that may occur (public).")
    max: int = Field(ge=-LARGEST_WHOLE, le=LARGEST_WHOLE, description="Largest value that may occur (public).")
    written: Written | None = Field(None, exclude_if=is_absent, description=_WRITTEN)
    affix: str | None = Field(None, min_length=1, max_length=8, exclude_if=is_absent, description=_AFFIX)
    unfit: Literal["nearest", "missing", "leave-out"] | None = Field(
        None, exclude_if=is_absent, description=_NUMBER_RULE
    )

    @model_validator(mode="after")
    def _ordered(self) -> Integer:
        if self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}; swap them")
        return self


class Continuous(_Column):
    """A real number within public bounds, written with a fixed number of decimals."""

    kind: Literal["continuous"] = "continuous"
    min: float = Field(description="Smallest value that may occur (public).", allow_inf_nan=False)
    max: float = Field(description="Largest value that may occur (public).", allow_inf_nan=False)
    decimals: int = Field(2, ge=0, le=12, description="Digits after the point in the synthetic table.")
    written: Written | None = Field(None, exclude_if=is_absent, description=_WRITTEN)
    affix: str | None = Field(None, min_length=1, max_length=8, exclude_if=is_absent, description=_AFFIX)
    unfit: Literal["nearest", "missing", "leave-out"] | None = Field(
        None, exclude_if=is_absent, description=_NUMBER_RULE
    )

    @model_validator(mode="after")
    def _ordered(self) -> Continuous:
        if self.min >= self.max:
            raise ValueError(f"min {self.min} is not below max {self.max}; a constant needs no column")
        return self


class Datetime(_Column):
    """A point in time within public bounds."""

    kind: Literal["datetime"] = "datetime"
    min: dt.datetime = Field(description="Earliest time that may occur (public), ISO 8601 without zone.")
    max: dt.datetime = Field(description="Latest time that may occur (public), ISO 8601 without zone.")
    precision: Literal["day", "hour", "minute", "second"] = Field("day", description="Finest unit that is kept.")
    format: str = Field("%Y-%m-%d", description="How the files write it, in strptime's notation.")
    unfit: Literal["nearest", "missing", "leave-out"] | None = Field(
        None, exclude_if=is_absent, description=_NUMBER_RULE
    )

    @model_validator(mode="after")
    def _ordered(self) -> Datetime:
        if self.min.tzinfo is not None or self.max.tzinfo is not None:
            raise ValueError("min and max must carry no time zone; convert to one zone and leave it out")
        if self.min > self.max:
            raise ValueError(f"min {self.min} is after max {self.max}; swap them")
        return self


class Identifier(_Column):
    """A name, number or key of a person. It is never encoded, counted, trained on or sent; it is read only where it is
    the schema's 'subject' or the 'entity' of its sequence, to bound what one of them contributes."""

    kind: Literal["identifier"] = "identifier"


Column = Annotated[Categorical | Boolean | Integer | Continuous | Datetime | Identifier, Field(discriminator="kind")]
DiscreteColumn = Categorical | Boolean
NumericColumn = Integer | Continuous | Datetime


class Schema(Strict):
    """Columns in order, the target, and how the files spell an empty cell."""

    columns: dict[str, Column] = Field(min_length=1, description="Column name to its public domain, in order.")
    target: str | None = Field(None, description="The column a model would predict; utility is measured on it.")
    missing_values: list[str] = Field(
        ["", "NA", "NaN", "null"], description="Cell texts that mean 'empty' in every column."
    )
    subject: str | None = Field(
        None,
        exclude_if=is_absent,
        description="Identifier column that says whose row it is. It is read, to bound what one person contributes, "
        "and never leaves; the synthetic table names made-up subjects.",
    )
    sequence: SequenceSettings | None = Field(
        None,
        exclude_if=is_absent,
        description="Rows in order: visits, months, hours. Left out: rows have nothing to do with each other.",
    )

    @model_validator(mode="after")
    def _printable(self) -> Schema:
        for place, what, text in self._texts():
            if (found := unprintable(text)) is not None:
                raise ValueError(
                    f"{place}: {what} {quoted(text)} holds the character {found}, which does not show or changes how "
                    "other text is shown; write it without"
                )
        return self

    def _texts(self) -> Iterator[tuple[str, str, str]]:
        """Everything that people read: its column by position and name, what it is, and the text."""
        for position, (name, column) in enumerate(self.columns.items(), start=1):
            place = f"column {position}, {quoted(name)}"
            yield place, "its name", name
            yield place, "its description", column.description.replace("\n", "")
            for label in column.labels if isinstance(column, Categorical | Boolean) else []:
                yield place, "the label", label
            if isinstance(column, Datetime):
                yield place, "its format", column.format
        for text in self.missing_values:
            yield "missing_values", "the text", text

    @model_validator(mode="after")
    def _consistent(self) -> Schema:
        if not self.released:
            raise ValueError("every column is an identifier, so nothing could be synthesized; declare another kind")
        if self.target is not None and self.target not in self.released:
            raise ValueError(f"target '{self.target}' is not among the released columns: {', '.join(self.released)}")
        kinds = {name: column.kind for name, column in self.columns.items()}
        if wrong := problem_of_rows(self.subject, self.sequence, kinds):
            raise ValueError(wrong)
        return self

    @property
    def released(self) -> dict[str, Categorical | Boolean | Integer | Continuous | Datetime]:
        """All columns but the identifiers and the one that only orders rows, in order."""
        time = self.sequence.time if self.sequence else None
        return {name: c for name, c in self.columns.items() if not isinstance(c, Identifier) and name != time}

    @property
    def discrete(self) -> dict[str, DiscreteColumn]:
        return {name: c for name, c in self.released.items() if isinstance(c, Categorical | Boolean)}

    @property
    def numeric(self) -> dict[str, NumericColumn]:
        return {name: c for name, c in self.released.items() if isinstance(c, Integer | Continuous | Datetime)}

    @property
    def amounts(self) -> dict[str, Integer | Continuous]:
        """Numbers that can be added and subtracted: all but times."""
        return {name: c for name, c in self.released.items() if isinstance(c, Integer | Continuous)}

    @property
    def owner(self) -> str | None:
        """The identifier that says which rows belong together."""
        return self.subject or (self.sequence.entity if self.sequence else None)

    @property
    def keys(self) -> list[str]:
        """Columns that are read and not released: whose row it is, and when."""
        time = self.sequence.time if self.sequence else None
        return [name for name in (self.owner, time) if name is not None]

    @property
    def added(self) -> list[str]:
        """Columns that a synthetic table has beside the declared ones."""
        said = self.sequence
        return [OWNER] * (self.owner is None) + [STEP] * (said.time is None) if said else []

    def digest(self) -> str:
        return digest_of(self.model_dump(mode="json"))
