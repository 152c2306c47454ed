"""What is counted in an assessment, and what that may cost: a function of the plan alone, the same on both sides.

Three releases, each of histograms in which a row lies in exactly one cell, so that adding a row changes as many cells
as there are histograms, each by 1:

    columns     one histogram a column
    pairs       one table for each compared pair of columns
    outcomes    score bucket × label for every judged class; predicted right or not; copied or not

An outcome is about a whole row. Where parties hold different columns nobody has one, and there is no such release.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from synth.encoding.contingency import Clique
from synth.encoding.scales import code_count
from synth.schema import Schema

if TYPE_CHECKING:
    from synth.plan import Plan

PARTS = {"columns": 0.15, "pairs": 0.35, "outcomes": 0.5}  # of the assessment's ρ
FLAGS = ("right", "copied")  # yes-or-no histograms; "right" only with a target


def class_count(schema: Schema) -> int:
    """Classes of the target, a missing cell being one; 0 where there is nothing to predict from or to tell apart."""
    if schema.target not in schema.discrete or len(schema.released) < 2:
        return 0
    classes = code_count(schema.discrete[schema.target])
    return classes if classes > 1 else 0


def judged_classes(schema: Schema) -> list[int]:
    """Classes with a curve of their own: of two, the second says it all."""
    classes = class_count(schema)
    return [1] if classes == 2 else list(range(classes))


def flags(schema: Schema) -> tuple[str, ...]:
    return FLAGS if class_count(schema) else FLAGS[1:]


def compared_pairs(plan: Plan) -> list[Clique]:
    """The target's pairs first, then those closest in the schema, which are most often kin."""
    names = list(plan.modelled.released)
    aim = names.index(plan.modelled.target) if plan.modelled.target in names else -1
    pairs = sorted(combinations(range(len(names)), 2), key=lambda pair: (aim not in pair, pair[1] - pair[0], pair))
    return sorted(pairs[: plan.assessment.pairs]) if plan.assessment else []


def parts(plan: Plan) -> dict[str, float]:
    """The releases that can be made, and what each may cost of the assessment's ρ."""
    if plan.partition == "rows":
        return PARTS
    tables = {part: share for part, share in PARTS.items() if part != "outcomes"}
    return {part: share / sum(tables.values()) for part, share in tables.items()}


def queries(plan: Plan) -> dict[str, int]:
    """Histograms of each release that has any."""
    outcomes = len(judged_classes(plan.modelled)) + len(flags(plan.modelled)) if plan.partition == "rows" else 0
    found = {"columns": len(plan.modelled.released), "pairs": len(compared_pairs(plan)), "outcomes": outcomes}
    return {part: count for part, count in found.items() if count}
