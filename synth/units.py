"""Whose presence is hidden: a row, a person, a step of a series; in words, and what a plan about each must be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from synth.plan import Plan

Unit = Literal["row", "subject", "step"]
NOUNS: dict[Unit, str] = {"row": "row", "subject": "person", "step": "time step"}
PLURALS: dict[Unit, str] = {"row": "rows", "subject": "people", "step": "time steps"}
RELATIONS: dict[Unit, str] = {
    "row": "add or remove",
    "subject": "add or remove",
    "step": "blank",  # the times of a series are public, the values of a step are not
}


def relation_of(unit: Unit) -> str:
    """The neighbouring tables, as a certificate says it."""
    return f"{RELATIONS[unit]} one {NOUNS[unit]} at one party"


def unit_of(relation: str) -> Unit:
    """The unit that a certificate's relation is about; a row where it says nothing known."""
    return next((unit for unit in NOUNS if relation_of(unit) == relation), "row")


def whole(unit: Unit) -> str:
    """The unit with all that belongs to it."""
    return "one person with all of their rows" if unit == "subject" else f"one {NOUNS[unit]}"


def problem_of_unit(plan: Plan) -> str | None:
    """Why the plan cannot protect the unit it names; None if it can."""
    said = None if plan.privacy == "none" else plan.privacy.unit
    if said == "subject" and plan.table.owner is None:
        return "privacy.unit 'subject' needs a schema that says whose row it is; name its 'subject'"
    if said is not None and plan.table.sequence is not None and said != plan.unit:
        return f"privacy.unit '{said}' contradicts the schema's sequence, whose unit is another; leave it out"
    if plan.privacy != "none" and plan.privacy.rows_per_subject > 1 and (plan.unit != "subject" or plan.table.sequence):
        return "privacy.rows_per_subject goes with unit 'subject' and a schema without sequence; leave it out"
    if plan.unit == "row":
        return None
    if plan.profile == "faithful" and not plan.family.clients:
        return "profile 'faithful' repeats papers that protect rows; use 'rigorous', or privacy.unit 'row'"
    if plan.unit == "step" and not plan.family.series:
        return f"'{plan.synthesizer.name}' cannot draw a series from pairs of steps; use 'marginals' with unit 'step'"
    if plan.records_per_unit > 1 and plan.family.answers != "counts":
        return f"'{plan.synthesizer.name}' takes one window of an entity; set sequence.max_windows to 1"
    return None
