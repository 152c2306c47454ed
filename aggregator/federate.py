"""The loop. It never changes when a synthesizer is added."""

from __future__ import annotations

from collections.abc import Callable

from aggregator.secure_sum import SecureSum
from synth.interface import Ask, Inquiry


def federate(inquiry: Inquiry, sums: SecureSum, number: int, sequence: int, absorbed: Callable[[Ask], None]) -> None:
    """Ask, sum, absorb, until the inquiry has nothing left to ask.

    `number` counts this inquiry's asks (not from 0 when resuming), `sequence` those of the whole run.
    """
    while (ask := inquiry.ask(number)) is not None:
        inquiry.absorb(sums.total(ask, sequence))
        absorbed(ask)
        number, sequence = number + 1, sequence + 1
