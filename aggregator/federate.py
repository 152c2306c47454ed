"""The loop. It never changes when a synthesizer is added."""

from __future__ import annotations

from collections.abc import Iterator

from aggregator.sums.secure_sum import SecureSum
from synth.errors import ProtocolError
from synth.interface import Ask, Inquiry, Sum


def federate(inquiry: Inquiry, sums: SecureSum, number: int, sequence: int) -> Iterator[tuple[Ask, Sum]]:
    """Ask, sum, absorb, until the inquiry has nothing left to ask; each ask and its sum, once it is absorbed.

    `number` counts this inquiry's asks (not from 0 when resuming), `sequence` those of the whole run.
    """
    while (ask := inquiry.ask(number)) is not None:
        total = sums.total(ask, sequence)
        _absorb(inquiry, total)
        yield ask, total
        number, sequence = number + 1, sequence + 1


def _absorb(inquiry: Inquiry, total: Sum) -> None:
    """What parties send has the form they give it: a sum that the inquiry cannot use is their fault, not ours."""
    try:
        inquiry.absorb(total)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise ProtocolError(
            f"the answers of {', '.join(total.parties)} to an ask of phase '{inquiry.phase}' do not have the form that "
            "the plan calls for; at least one of them runs another version"
        ) from error
