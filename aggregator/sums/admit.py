"""Who takes part is fixed before the first question: the plan's parties, each with its approval of this very plan."""

from __future__ import annotations

from collections.abc import Mapping

from aggregator.sums.bound import BoundLists
from aggregator.sums.exchange import GridExchange
from aggregator.sums.secure_sum import SecureSum
from crypto.keys import Identity
from synth.plan import Plan


def admit(
    plan: Plan,
    run: str,
    exchange: GridExchange,
    roster: Mapping[str, Identity] | None = None,
    lists: BoundLists | None = None,
) -> SecureSum:
    """Say hello, let the parties check each other's keys, and return the sum they agreed to form.

    Also how a run is taken up again: every party of the plan is invited anew, those lost before included. Epochs go on
    where the parties remember them to be, so the aggregator need not.
    """
    sums = SecureSum(plan, run, exchange, roster, lists)
    sums.agree_on_keys(exchange.discover(sums.hello(), sums.parties, plan.minimum_parties))
    return sums
