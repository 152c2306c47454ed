"""What a schema says about rows that belong together: whose they are, in which order, and how they are modelled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, model_validator

from synth.strict import Strict

Encoding = Literal["level", "increments", "deviations"]
OWNER, STEP = "sequence", "step"  # what a synthetic table calls these columns where the schema does not name them
MOST_STEPS = 1024  # of one sequence: every step of every column is a column of the model


class SequenceSettings(Strict):
    """Rows in order: several for every entity (visits, months), or one long series."""

    entity: str | None = Field(
        None,
        description="Identifier column that says which rows belong together. Default: the schema's 'subject'; without "
        "either all rows of a party are one series.",
    )
    time: str | None = Field(
        None,
        description="Integer, continuous or datetime column that orders an entity's rows. It is read and never "
        "modelled; the synthetic table holds a step index instead. Left out: the order of the file.",
    )
    length: int = Field(
        ge=1, le=MOST_STEPS, description="Most steps of a modelled sequence; longer ones are cut into windows."
    )
    shortest: int = Field(
        1,
        ge=1,
        description="Fewest steps; shorter sequences are left out. Equal to 'length' where every entity has as many, "
        "which saves noise: else the length of each is private and modelled.",
    )
    stride: int | None = Field(
        None, ge=1, description="Steps from the start of one window to the next. Default: 'length', no overlap."
    )
    static: list[str] = Field([], description="Columns that are the same in all rows of an entity.")
    unit: Literal["entity", "step"] = Field(
        "entity",
        description="What is protected: all rows of one entity, or one step of a series whose times are public.",
    )
    max_windows: int = Field(
        1,
        ge=1,
        le=64,
        description="Windows kept of one entity, chosen by the party's private coin. Each adds noise for everybody.",
    )
    encode: dict[str, Encoding] = Field(
        {},
        description="How a number is modelled over time: its level (default for labels), increments from step to step "
        "(default with unit 'step'; best for short panels), or deviations from the entity's mean (best for long ones).",
    )

    @model_validator(mode="after")
    def _possible(self) -> SequenceSettings:
        if self.shortest > self.length:
            raise ValueError(f"shortest {self.shortest} is more than length {self.length}; lower it")
        if self.unit == "step" and (self.max_windows > 1 or self.stride is not None or self.static):
            raise ValueError(
                "with unit 'step' neighbouring steps are counted, so there are no windows to choose ('max_windows', "
                "'stride') and nothing is 'static'; remove these"
            )
        return self


def problem_of_rows(subject: str | None, said: SequenceSettings | None, kinds: Mapping[str, str]) -> str | None:
    """What is wrong with whose rows they are and in which order, given the kinds of the schema's columns."""
    owners = {"subject": subject, "sequence.entity": said.entity if said else None}
    for key, name in owners.items():
        if name is not None and kinds.get(name) != "identifier":
            return f"{key} '{name}' must be a column of kind identifier: it is read and never leaves"
    return None if said is None else _problem(subject, said, kinds)


def _problem(subject: str | None, said: SequenceSettings, kinds: Mapping[str, str]) -> str | None:
    if None not in (subject, said.entity) and subject != said.entity:
        return "'subject' and 'sequence.entity' name two columns; name whoever the sequences are about"
    if said.unit == "entity" and (subject or said.entity) is None:
        return "sequence.unit 'entity' needs 'sequence.entity' (or 'subject'): whose rows are they?"
    if said.time is not None and kinds.get(said.time) not in ("integer", "continuous", "datetime"):
        return f"sequence.time '{said.time}' must be an integer, continuous or datetime column"
    released = [name for name, kind in kinds.items() if kind != "identifier" and name != said.time]
    if unknown := [name for name in (*said.static, *said.encode) if name not in released]:
        return f"sequence names {', '.join(unknown)}, which are no released columns; check the spelling"
    if wrong := [n for n, how in said.encode.items() if how != "level" and kinds[n] not in ("integer", "continuous")]:
        return f"sequence.encode: {', '.join(wrong)} can only be 'level'; numbers have increments"
    if said.unit == "entity" and set(released) <= set(said.static):
        return "every column is static, so nothing happens over time; leave 'sequence' out"
    return None
