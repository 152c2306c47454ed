"""What a certificate says beside ε where parties hold different columns of the same people."""

from __future__ import annotations

from itertools import chain
from typing import cast

from pydantic import Field

from synth import units
from synth.assessment.inquiry import AssessmentInquiry
from synth.encoding.contingency import Clique
from synth.linkage.pairs import CountsPairs, dealer_of
from synth.linkage.settings import AGGREGATOR, NOBODY_DEALS
from synth.plan import Plan
from synth.privacy.substitution import Touched, sampled_steps, substitution_epsilon, two_steps_epsilon
from synth.programme import fitted_on, inquiries
from synth.schema import Strict
from synth.statistics.histograms import StatisticsInquiry

RELATION = "add or remove one person, with a row at every party"
FOLLOWING = (
    "All of it holds for parties that follow the protocol: one that sends other numbers than its rows' could make a "
    "person stand out."
)
ALIGNMENTS = {
    "pseudonyms": "Rows found each other by keyed hashes of '{key}' that the aggregator matched without the key; "
    "whoever is not at every party was left out. The aggregator saw, with noise, how many people are at which parties; "
    "each party learned which of its own people all the others hold too. A party that conspires with the aggregator "
    "gives it the key, and they know who is at which party: towards them only ε for cells replaced holds.",
    "presorted": "All parties held the same people, by '{key}', and compared a keyed digest of their order. The "
    "aggregator saw, with noise, how many there are; a party knows exactly.",
}


class LinkageRecord(Strict):
    """The unit, and who could do what."""

    unit: str = Field(description="Whose presence is hidden, in words.")
    alignment: str = Field(description="How rows found each other, and what that showed, in words.")
    dealers: str = Field(description="Who dealt for cross tables, and which coalition could read rows, in words.")
    substitution_epsilon: float | None = Field(
        description="ε towards a party of the plan, which knows who is in: for one person's cells elsewhere replaced. "
        "It holds towards such a party and the aggregator together."
    )


def linkage_record(plan: Plan) -> LinkageRecord | None:
    """None under a plan by rows."""
    if plan.linkage is None:
        return None
    return LinkageRecord(
        unit="One person, with a row at every party; every party's ledger is charged the whole, not a part.",
        alignment=ALIGNMENTS[plan.linkage.alignment].format(key=plan.linkage.key),
        dealers=dealers_in_words(plan),
        substitution_epsilon=None if plan.privacy == "none" or plan.profile == "faithful" else _substitution(plan),
    )


def relation_of(plan: Plan) -> str:
    """The neighbouring tables that a run of this plan makes indistinguishable."""
    return units.relation_of(plan.unit) if plan.partition == "rows" else RELATION


def dealers_in_words(plan: Plan) -> str:
    if plan.linkage is not None and plan.linkage.dealer == AGGREGATOR:
        return (
            "The aggregator dealt for cross tables, so it and any one party TOGETHER could read the other's rows; "
            "either alone could not (colluders: 0)."
        )
    if plan.linkage is not None and plan.linkage.dealer == NOBODY_DEALS:
        return (
            "Nobody dealt for cross tables: of every two parties the first by name encrypted its rows under a key of "
            "its own (BFV, 128 bits), and the other returned sums under masks, flooded with noise. So no coalition "
            "could read the rows of a party outside it. Towards the first, δ is larger by what encryption leaves open: "
            f"at most 2^-26 for 33,000 people, 2^-21 for a million. {FOLLOWING}"
        )
    pairs = [(a, b) for a in plan.holders for b in plan.holders if a < b]
    dealt = "; ".join(f"{dealer_of(plan, pair)} for {pair[0]} and {pair[1]}" for pair in pairs)
    return (
        f"Parties outside each pair dealt for cross tables ({dealt}). A dealer and one party of its pair together "
        f"could read the other's rows; the aggregator and any one party together could not. {FOLLOWING}"
    )


def _substitution(plan: Plan) -> float:
    """The largest over the parties that hold columns."""
    unknown = min(1.0, (len(plan.parties) - 1) / plan.noisy_parties)
    steps = sampled_steps(fitted_on(plan)[1].whole_cost(plan.holders[0]))  # the same at every party
    delta = plan.delta / 2 if steps else plan.delta
    tables = max(substitution_epsilon(_touched(plan, holder), delta, unknown) for holder in plan.holders)
    return tables + (two_steps_epsilon(steps, delta) if steps else 0.0)


def _touched(plan: Plan, knower: str) -> list[Touched]:
    """Of every release, the tables with a column that the knower does not hold. Which pairs a later round counts is
    decided by what was released, so all of those are taken to be such."""
    histograms, tables = fitted_on(plan)
    statistics, training = cast(StatisticsInquiry, histograms), cast(CountsPairs, tables)
    held = set(plan.columns_of(knower))
    if statistics.event is None or training.noise is None:
        return []
    grid, (first, *later) = statistics.grid, training.noise
    own = sum(name in held for name in chain(grid.slices, grid.groups, grid.weeks))
    counted = (statistics.event, statistics.event.queries - own)
    found = [
        counted,
        (first, _foreign(training.names, training.pairs, held)),
        *((each, each.queries) for each in later),
    ]
    if assessment := cast(AssessmentInquiry | None, inquiries(plan).get("assessment")):
        found += [
            (event, _foreign(assessment.names, assessment.cliques[part], held))
            for part, event in assessment.events.items()
        ]
    return found


def _foreign(names: list[str], cliques: list[Clique], held: set[str]) -> int:
    return sum(not {names[column] for column in clique} <= held for clique in cliques)
