"""Who takes part is fixed before the first question: the plan's parties, each with its approval of this very plan."""

from __future__ import annotations

from aggregator.exchange import GridExchange
from aggregator.secure_sum import SecureSum
from synth.plan import Plan


def admit(plan: Plan, run: str, exchange: GridExchange) -> SecureSum:
    """Say hello, let the parties check each other's keys, and return the sum they agreed to form."""
    sums = SecureSum(plan, run, exchange)
    replies = exchange.discover(sums.hello(), sums.parties)
    sums.agree_on_keys(replies)
    return sums
