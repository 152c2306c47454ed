"""What everything at a party holds against its lifetime budget, by an account that is proven for how plans are chosen.

Plans are chosen in view of earlier results, so they are added up by a Rényi filter (`synth.privacy.lifetime`). One plan
alone needs none: nothing was seen before it, and its mechanisms are fixed, so it is composed tightly. It may even need
more than the filter's room. Then nothing is ever admitted after it, not even if it ends early: once it gave a single
answer it counts in whole, so that nobody can choose between its rest and another plan in view of that answer.
"""

from __future__ import annotations

from collections.abc import Iterable

from fed_node.ledger.book import DELTA_WITHOUT_BUDGET, Account, Budget
from fed_node.ledger.tally import Tally, events_of
from synth.privacy.accounting import Spent, compose
from synth.privacy.lifetime import compose_adaptively

ROUNDING = 1e-9  # relative; adding the same losses in another order differs by less


def held(accounts: Iterable[Account], budget: Budget | None, wanted: Tally | None = None) -> Spent:
    """ε of all that these accounts spent or may still spend, together with what another one wants."""
    parts = [part for part in (*(_part(each, budget) for each in accounts), wanted) if part]
    whole = events_of(sum(parts[1:], parts[0])) if parts else []
    if budget is None:
        return compose(whole, DELTA_WITHOUT_BUDGET)
    return (compose if len(parts) < 2 else compose_adaptively)(whole, budget.delta)


def is_within(spent: Spent, budget: Budget | None) -> bool:
    return budget is None or spent.epsilon <= budget.epsilon * (1 + ROUNDING)


def _part(account: Account, budget: Budget | None) -> Tally:
    """What an account counts for: a plan beyond the filter's room, once it has answered, for all that it might have."""
    if budget is None or account.is_open or not account.charged:
        return account.committed
    whole = compose_adaptively(events_of(account.reserved), budget.delta)
    return account.charged if is_within(whole, budget) else account.reserved
