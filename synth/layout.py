"""How the rows of one person, or of one window of a series, lie side by side in one record.

A model family sees records, and one record is what the accountant protects. So where a person has several rows, these
become one wide record before anything is computed: `bill@1`, `bill@2`, … Whatever is then counted, sampled or clipped
per record is counted, sampled and clipped per person. A record's columns and their domains follow from the plan alone.

    level        x@1, x@2, …                       as they are
    increments   x@1, then x@t = x_t - x_(t-1)     numbers; what changes is small beside what is
    deviations   x@mean, and x@t = x_t - x@mean    numbers; what an entity is like is told once
    @length      where lengths vary                steps beyond it are absent cells

With unit 'step' a record is a pair of neighbouring steps (x@1, x@2): every step lies in two of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from synth.schema import Column, Continuous, Integer, Schema
from synth.sequence import Encoding, SequenceSettings

LENGTH = "@length"
NEIGHBOURS = 2  # steps of a record with unit 'step', and records that a step is in


@dataclass(frozen=True, eq=False)
class Layout:
    """Everything about the records that is not in the rows."""

    table: Schema  # as it was written, one row a step
    said: SequenceSettings
    ordered: bool = True  # False: a person's rows in no order, as the coin shuffles them

    @property
    def is_series(self) -> bool:
        """Whether one step is the unit."""
        return self.said.unit == "step"

    @property
    def steps(self) -> int:
        """Of one record."""
        return NEIGHBOURS if self.is_series else self.said.length

    @property
    def varies(self) -> bool:
        return not self.is_series and self.said.shortest < self.said.length

    @property
    def stride(self) -> int:
        return self.said.stride or self.said.length

    @property
    def records_per_unit(self) -> int:
        """Records that one protected unit is in, at most."""
        return NEIGHBOURS if self.is_series else self.said.max_windows

    @property
    def static(self) -> list[str]:
        return [name for name in self.table.released if name in self.said.static]

    @property
    def stepped(self) -> list[str]:
        return [name for name in self.table.released if name not in self.said.static]

    def encoding(self, name: str) -> Encoding:
        usual: Encoding = "increments" if self.is_series and name in self.table.amounts else "level"
        return self.said.encode.get(name, usual)

    def at(self, name: str, step: int) -> str:
        """The record's column for one step, counted from 1."""
        return f"{name}@{step}" if self.steps > 1 else name

    def mean(self, name: str) -> str | None:
        """The record's column for the entity's mean, where it has one."""
        return f"{name}@mean" if self.encoding(name) == "deviations" else None

    @cached_property
    def modelled(self) -> Schema:
        """The schema of the records."""
        if self.steps == 1:
            return self.table
        columns: dict[str, Column] = {name: self.table.columns[name] for name in self.static}
        if self.varies:
            columns[LENGTH] = Integer(min=self.said.shortest, max=self.said.length)
        for name in self.stepped:
            if (mean := self.mean(name)) is not None:
                columns[mean] = _plain(self.table.columns[name], self.table.columns[name].missing)
        for step in range(1, self.steps + 1):
            columns |= {self.at(name, step): self._column(name, step) for name in self.stepped}
        target = self.table.target if self.table.target in self.static else None
        return Schema(columns=columns, target=target, missing_values=self.table.missing_values)

    def _column(self, name: str, step: int) -> Column:
        column, how = self.table.columns[name], self.encoding(name)
        missing = column.missing or self.varies
        if how == "deviations" or (how == "increments" and step > 1):
            return _difference(column, missing)
        return _plain(column, missing)

    def place(self, column: str) -> tuple[str, int]:
        """The written column and the step (0: the whole entity) of a record's column."""
        name, _, step = column.rpartition("@")
        if column in self.static or not name or self.steps == 1:
            return column, 0
        return name, 0 if step == "mean" else int(step)


def layout_of(table: Schema, unit: str, rows_per_subject: int) -> Layout | None:
    """None where every row is a record. A person's rows without an order are a sequence that the coin orders."""
    if table.sequence is not None:
        return Layout(table, table.sequence)
    if unit != "subject":
        return None
    return Layout(table, SequenceSettings(length=rows_per_subject), ordered=False)


def _plain(column: Column, missing: bool) -> Column:
    """What does not fit was dealt with when the rows were read."""
    return column.model_copy(update={"missing": missing, "unfit": None})


def _difference(column: Column, missing: bool) -> Column:
    if isinstance(column, Integer):
        return Integer(min=column.min - column.max, max=column.max - column.min, missing=missing)
    assert isinstance(column, Continuous)
    width = column.max - column.min
    return Continuous(min=-width, max=width, decimals=column.decimals, missing=missing)
