"""What a list of events lets anybody claim: (ε, δ), or openly that there is none."""

from __future__ import annotations

import math

from pydantic import Field

from synth.privacy.accounting import compose
from synth.privacy.events import Event
from synth.strict import Strict
from synth.units import relation_of

RELATION = relation_of("row")


class Claim(Strict):
    """(ε, δ), and how far it can be believed."""

    epsilon: float | None = Field(description="Upper bound of the privacy loss; null means no finite bound.")
    nominal_epsilon: float | None = Field(description="What the paper would print: releases it ignores left out.")
    delta: float = Field(description="The δ at which ε is computed.")
    relation: str = Field(RELATION, description="The neighbouring tables that are indistinguishable.")
    method: str = Field(description="Accountant that composed the events.")


def claim_of(events: list[Event], delta: float) -> Claim:
    """Compose the events; with anything unaccounted there is no ε, only a nominal one."""
    if not events:
        return Claim(epsilon=0.0, nominal_epsilon=0.0, delta=delta, method="none")
    accountable = [event for event in events if event.guaranteed]
    nominal = compose(accountable, delta) if accountable else None
    sound = len(accountable) == len(events) and nominal is not None
    finite = nominal is not None and math.isfinite(nominal.epsilon)
    return Claim(
        epsilon=nominal.epsilon if sound and finite and nominal else None,
        nominal_epsilon=nominal.epsilon if finite and nominal else None,
        delta=delta,
        relation=relation_of(events[0].about),
        method=nominal.method if nominal else "none",
    )


def worst(claims: list[Claim]) -> Claim:
    """Parties hold disjoint rows, so the release's claim is the largest of any party."""
    return max(claims, key=lambda claim: math.inf if claim.epsilon is None else claim.epsilon)
