"""A plan in plain words, for the person who answers for the rows: what leaves, who sees it, what it costs."""

from __future__ import annotations

from collections.abc import Sequence

from synth.plan import Mode, Plan, Privacy
from synth.privacy.events import CountNoise, Event, Gaussian, Laplace, SampledGaussian

WAYS: dict[Mode, str] = {
    "masked": "hidden under masks that cancel in the sum: the aggregator sees only the sum of the parties",
    "ckks": "encrypted under a key the aggregator does not have: only the sum of the parties is ever opened",
    "plain": "as they are: the aggregator sees this party's own",
}


def describe(plan: Plan, party: str, events: Sequence[Event] = ()) -> str:
    """What approving `plan` means for `party`. `events` is its whole cost, where it is known."""
    member = plan.party(party)
    columns = list(plan.table.released)
    unread = [name for name in plan.table.columns if name not in columns]
    asks = plan.planned_asks
    lines = [
        f"Plan '{plan.name}' (digest {plan.digest()})",
        f"  Parties: {', '.join(p.name for p in plan.parties)}; sums are opened of {plan.minimum_parties} or more.",
        f"  You are '{party}' and declare {member.rows} rows, which everybody may know.",
        f"  Read: {len(columns)} columns ({', '.join(columns)}).",
        f"  Never read: {', '.join(unread) or 'nothing; the schema names no identifier'}.",
        "What leaves this party",
        f"  1. {_times(asks['statistics'])}: {_statistics(plan)}. "
        f"They travel {WAYS['plain' if plan.gathers_statistics else plan.secure_sum.statistics]}.",
        f"  2. {_times(asks['training'])}: what training a model of the family '{plan.synthesizer.name}' asks for, "
        f"computed on the rows{_clipping(plan)}. They travel {WAYS[plan.secure_sum.updates]}.",
        *_assessment(plan),
        "  Everybody may see the synthetic table, the model, and every sum that is opened.",
        "What it costs",
        *_cost(plan),
        *(f"  Charged: {_words(event)}." for event in events),
    ]
    return "\n".join(lines)


def _times(count: int) -> str:
    return "Once" if count == 1 else f"{count} times"


def _statistics(plan: Plan) -> str:
    if plan.averages_mixtures:
        return "what the published protocol sends about each column, exactly"
    counts = "how many rows fall into each cell of each column"
    if plan.privacy == "none":
        return f"{counts}, exactly"
    if plan.shares_noise:
        colluders = plan.secure_sum.colluders
        return f"{counts}, with noise of which each party adds a share; safe while at most {colluders} collude"
    return f"{counts}, with enough noise added here to need no trust in anybody"


def _assessment(plan: Plan) -> list[str]:
    if plan.assessment is None:
        return []
    noise = "exactly" if plan.privacy == "none" else "with noise as above"
    return [
        "  3. Once, when the synthetic table is made: how many rows fall into each cell of a column and of pairs of "
        f"columns, into each bucket of a classifier trained on the table, and are in the table word for word, {noise}. "
        f"They travel {WAYS[plan.secure_sum.statistics]}."
    ]


def _clipping(plan: Plan) -> str:
    return "" if plan.privacy == "none" else ", each row's influence limited and noise added here"


def _cost(plan: Plan) -> list[str]:
    if not isinstance(plan.privacy, Privacy) or plan.profile != "rigorous":
        return ["  There is NO proven limit to what can be learned about a row. Only for rows that are public anyway."]
    return [
        f"  At most ε = {plan.privacy.epsilon:g} at δ = {plan.privacy.delta:g} of your budget, for one row added or "
        "removed, over everything above.",
        "  In words: whatever anybody concludes about a person from the results, that person's row being there changes "
        f"the odds by a factor of at most e^{plan.privacy.epsilon:g}, but for a chance of {plan.privacy.delta:g}.",
    ]


def _words(event: Event) -> str:
    match event:
        case CountNoise(queries, variance):
            return f"{queries} histograms with integer noise of variance {variance:g} per cell"
        case SampledGaussian(sample_rate, noise_multiplier, steps):
            return (
                f"{steps} training steps, each on a random {sample_rate:.3%} of the rows, with Gaussian noise of "
                f"{noise_multiplier:.4g} times a row's largest influence"
            )
        case Gaussian(noise_multiplier):
            return f"one release with Gaussian noise of {noise_multiplier:.4g} times a row's largest influence"
        case Laplace(scale):
            return f"one release with Laplace noise of {scale:.4g} times a row's largest influence"
    return f"{event.what}, without any guarantee"
