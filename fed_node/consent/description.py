"""A plan in plain words, for the person who answers for the rows: what leaves, who sees it, what it costs."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence

from fed_node.consent.linked import by_columns, leaving_to_align
from synth.plan import Mode, Plan, Privacy
from synth.printable import quoted
from synth.privacy.events import Event
from synth.programme import Phase, Stage, programme
from synth.units import NOUNS, PLURALS, Unit, whole

WAYS: dict[Mode, str] = {
    "masked": "hidden under masks that cancel in the sum: the aggregator sees only the sum of the parties",
    "ckks": "encrypted under a key the aggregator does not have: only the sum of the parties is ever opened",
    "plain": "as they are: the aggregator sees this party's own",
}


CHANGED: dict[Unit, str] = {"row": "added or removed", "subject": "added or removed", "step": "blanked"}
THERE: dict[Unit, str] = {
    "row": "a person's row",
    "subject": "a person with all of their rows",
    "step": "the values of one step",
}


def in_groups(digest: str) -> str:
    """A digest in groups of eight, to be read and typed."""
    return " ".join(textwrap.wrap(digest, 8))


def describe(plan: Plan, party: str, events: Sequence[Event] = ()) -> str:
    """What approving `plan` means for `party`. `events` is its whole cost, where it is known."""
    member = plan.party(party)
    columns = plan.columns_of(party)
    key = plan.linkage.key if plan.linkage and columns else None
    keys = plan.table.keys if plan.layout is not None else []
    unread = [name for name in plan.table.columns if name not in (key, *columns, *keys)]
    lines = [
        f"Plan '{plan.name}', whose digest is",
        f"  {in_groups(plan.digest())}",
        f"  Parties: {', '.join(p.name for p in plan.parties)}; sums are opened of {plan.minimum_parties} or more.",
        f"  You are '{party}' and declare {member.rows} {PLURALS[plan.unit]}, which everybody may know.",
        *by_columns(plan, party),
        f"  Read: {len(columns)} columns ({', '.join(map(quoted, columns))}).",
        *([f"  Read here, to tell whose row it is and when, and never counted: {_listed(keys)}."] if keys else []),
        *_bounding(plan),
        f"  Never read: {', '.join(map(quoted, unread)) or 'nothing; the schema names no identifier'}.",
        "What leaves this party",
        *(f"  {place}. {_leaving(plan, stage, party)}" for place, stage in enumerate(programme(plan).stages, start=1)),
        "  Everybody may see the synthetic table, the model, and every sum that is opened.",
        "What it costs",
        *_cost(plan),
        *(f"  Charged: {event.words()}." for event in events),
    ]
    return "\n".join(lines)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(quoted, names))


def _bounding(plan: Plan) -> list[str]:
    """How many of a person's rows are used, where that is bounded."""
    if plan.layout is None or plan.layout.is_series:
        return []
    windows = plan.layout.records_per_unit
    often = f", in up to {windows} windows" if windows > 1 else ""
    return [f"  Used of one person: {plan.layout.steps} rows at most{often}; which ones, your own coin decides."]


def _leaving(plan: Plan, stage: Stage, party: str) -> str:
    """What the asks of one phase take away, how often, and who sees it."""
    contents: dict[Phase, Callable[[Plan], str]] = {
        "alignment": lambda plan: leaving_to_align(plan, party),
        "statistics": _statistics,
        "training": _training,
        "assessment": _assessment,
    }
    times = "Once" if stage.asks == 1 else f"{stage.asks} times"
    when = ", when the synthetic table is made" if stage.phase == "assessment" else ""
    return f"{times}{when}: {contents[stage.phase](plan)}. They travel {WAYS[stage.mode]}."


def _statistics(plan: Plan) -> str:
    if plan.family.statistics == "mixture rounds":
        return "what the published protocol sends about each column, exactly"
    return f"how many rows fall into each cell of each column, {_noise_of_counts(plan)}"


def _training(plan: Plan) -> str:
    asked = f"what training a model of the family '{plan.synthesizer.name}' asks for, computed on the rows"
    if plan.privacy == "none":
        return asked
    if plan.family.answers == "counts":
        return f"{asked}, as published" if plan.profile == "faithful" else f"{asked}: counts, with noise as above"
    if plan.family.answers == "votes":
        secret = f"votes of secretly drawn groups of {PLURALS[plan.unit]} for the model's weights"
        return f"{asked}: sums of {secret}, each vote randomised here"
    limited = f"each {NOUNS[plan.unit]}'s influence limited"
    counted = f"first counts, {_noise_of_counts(plan)}; then " if plan.family.counted_share else ""
    if plan.family.answers == "gradients":
        return f"{asked}: {counted}sums of gradients, {limited}, {_noise_of_counts(plan)}"
    return (
        f"{asked}: {counted}updates, {limited} and noise added here"
        if counted
        else (f"{asked}, {limited} and noise added here")
    )


def _assessment(plan: Plan) -> str:
    noise = "exactly" if plan.privacy == "none" else "with noise as above"
    return (
        "how many rows fall into each cell of a column and of pairs of columns, into each bucket of a classifier "
        f"trained on the table, and are in the table word for word, {noise}"
    )


def _noise_of_counts(plan: Plan) -> str:
    if plan.privacy == "none":
        return "exactly"
    if plan.shares_noise and plan.partition == "columns":
        return "with noise: all of it added here for your own columns, a share for tables across parties"
    if plan.shares_noise:
        colluders = plan.secure_sum.colluders
        return f"with noise of which each party adds a share; safe while at most {colluders} collude"
    return "with enough noise added here to need no trust in anybody"


def _cost(plan: Plan) -> list[str]:
    if not isinstance(plan.privacy, Privacy) or plan.profile != "rigorous":
        return ["  There is NO proven limit to what can be learned about a row. Only for rows that are public anyway."]
    unit = whole(plan.unit) if plan.partition == "rows" else "one person, with a row at every party,"
    return [
        f"  At most ε = {plan.privacy.epsilon:g} at δ = {plan.privacy.delta:g} of your budget, for {unit} "
        f"{CHANGED[plan.unit]}, over everything above.",
        f"  In words: whatever anybody concludes from the results, {THERE[plan.unit]} being there changes "
        f"the odds by a factor of at most e^{plan.privacy.epsilon:g}, but for a chance of {plan.privacy.delta:g}.",
    ]
