"""What a plan says where parties hold different columns of the same people, and what of it cannot be.

Kept apart from the alignment itself so that reading a plan is cheap.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from synth.schema import Identifier, Strict

if TYPE_CHECKING:
    from synth.plan import Plan

ASKS = 3  # of an alignment
MOST_HOLDERS = 8  # the aggregator sees which parties a pseudonym is at: a cell for every set of parties
MOST_PEOPLE = 10**9
JUDGED = {"maximum_tvd_one_way", "maximum_tvd_two_way"}  # limits of a gate that tables of pairs can be held against
AGGREGATOR = "aggregator"  # no party's name where it deals
NOBODY_DEALS = "none"


class Linkage(Strict):
    """How rows of the same person find each other."""

    key: str = Field(description="The identifier column that says whose row it is: at every party, never sent.")
    alignment: Literal["pseudonyms", "presorted"] = Field(
        "pseudonyms",
        description="'pseudonyms': parties send keyed hashes of the key, and whoever is not at all of them is left "
        "out. 'presorted': all parties hold exactly the same people, and nothing of them is sent.",
    )
    dealer: Literal["aggregator", "none"] | None = Field(
        None,
        description="Who deals the random triples of cross tables. Left out: a party outside each pair, so three or "
        "more are needed (one may hold no columns: a notary). 'aggregator': goes with secure_sum.colluders 0 only. "
        "'none': nobody, one of two parties encrypts its rows for the other to add up; a hundred times slower.",
    )


def problem(plan: Plan) -> str | None:
    """What cannot be in a plan by columns, or by rows, in words; None: nothing."""
    if plan.partition == "rows":
        if plan.linkage is not None or any(party.columns is not None for party in plan.parties):
            return "'linkage' and a party's 'columns' go with 'partition: columns'; say so, or remove them"
        return None
    if plan.linkage is None:
        return "'partition: columns' needs a 'linkage' section that names the key column"
    if plan.unit != "row":
        return (
            "'partition: columns' takes one row a person at each party, and nobody there sees a sequence, or all rows "
            "of a person, whole: leave 'sequence' and 'subject' out of the schema and give each party one row a person "
            "(steps as columns of their own, sums, last values); or plan by rows"
        )
    return _columns(plan, plan.linkage) or _procedure(plan) or _trust(plan, plan.linkage)


def _columns(plan: Plan, linkage: Linkage) -> str | None:
    if not isinstance(plan.table.columns.get(linkage.key), Identifier):
        return f"linkage.key '{linkage.key}' must be a column of kind 'identifier' in the schema; declare it"
    if silent := [party.name for party in plan.parties if party.columns is None]:
        return f"under 'partition: columns' every party needs 'columns' ([] for a notary): {', '.join(silent)}"
    held = Counter(name for party in plan.parties for name in party.columns or [])
    if unknown := sorted(set(held) - set(plan.table.released)):
        return f"these columns of parties are no released columns of the schema: {', '.join(unknown)}"
    if twice := sorted(name for name, times in held.items() if times > 1):
        return f"these columns are at two parties; let one of them hold each: {', '.join(twice)}"
    if nobody := [name for name in plan.table.released if name not in held]:
        return f"nobody holds these columns; give each to a party or take it out: {', '.join(nobody)}"
    if not 2 <= len(plan.holders) <= MOST_HOLDERS:
        return f"'partition: columns' is for 2 to {MOST_HOLDERS} parties that hold columns, not {len(plan.holders)}"
    if plan.declared_rows > MOST_PEOPLE:
        return f"shares of tables are counted modulo 2^32, which leaves room for {MOST_PEOPLE:,} people"
    return None


def _procedure(plan: Plan) -> str | None:
    if not plan.family.by_columns:
        return f"'{plan.synthesizer.name}' cannot be made from tables across parties; use 'marginals' or 'bayes'"
    if plan.profile != "rigorous" and not plan.family.published_by_columns:
        return "'partition: columns' has no published protocol that holds; leave the profile 'rigorous'"
    if plan.gate is not None and (blind := sorted(set(plan.gate.limits) - JUDGED)):
        return (
            f"gate.{blind[0]} is about whole rows, which nobody has under 'partition: columns'; judge the table by "
            f"{' and '.join(sorted(JUDGED))}, and by the rest wherever whole rows lie in one place"
        )
    if plan.minimum_parties < len(plan.parties):
        return "under 'partition: columns' nobody can be spared: remove secure_sum.minimum_parties"
    if "plain" in (plan.secure_sum.statistics, plan.secure_sum.updates):
        return "shares of cross tables must not lie open: use 'masked' or 'ckks' in secure_sum, not 'plain'"
    return None


def _trust(plan: Plan, linkage: Linkage) -> str | None:
    colluders = plan.secure_sum.colluders
    if AGGREGATOR in {party.name for party in plan.parties}:
        return f"under 'partition: columns' no party may be called '{AGGREGATOR}'; rename it"
    if linkage.dealer == AGGREGATOR:
        if colluders != 0:
            return (
                "with 'dealer: aggregator' it and one party together could read the other's rows: say so with "
                "secure_sum.colluders 0"
            )
        return None
    if linkage.dealer == NOBODY_DEALS:
        return None
    if len(plan.parties) < 3:
        return (
            "two parties have nobody outside the pair to deal: add a third, which may hold no columns (a notary), or "
            "set linkage.dealer to 'none' (slower), or to 'aggregator' with secure_sum.colluders 0"
        )
    if colluders > 1:
        return "a dealer and one party together could read the other's rows: secure_sum.colluders is 1 at most"
    return None
