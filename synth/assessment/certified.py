"""Holding a certified assessment against the parties' signed events and the plan."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from synth.assessment.gate import judge
from synth.assessment.record import AssessmentRecord
from synth.plan import Plan
from synth.privacy.events import Event, from_dict

Signed = Sequence[Sequence[Event]]  # by party, what it stated to have been charged


def payers(record: AssessmentRecord, signed: Signed) -> int:
    """Parties that signed for the whole cost."""
    cost = Counter(map(from_dict, record.cost))
    return sum(not cost - Counter(events) for events in signed)


def flaw(record: AssessmentRecord, signed: Signed, fewest: int, plan: Plan | None) -> str | None:
    """What is wrong with the assessment of a certificate, in words; None: nothing that can be seen from here. `fewest`
    parties may have been in the sum: one that was lost and came back has paid for nothing in between."""
    if plan is not None and plan.assessment is None:
        return "the plan has none, the certificate does"
    if not record.cost or payers(record, signed) < fewest:
        return f"its cost is among the signed events of {payers(record, signed)} parties; {fewest} are the fewest"
    figures = [bound for figure in record.figures.values() for bound in (figure.low, figure.value, figure.high)]
    if not all(map(math.isfinite, figures)):
        return "a figure is not a number"
    if plan is not None and record.verdicts != judge(plan.gate, record.figures):
        return "the gate's verdicts do not follow from the plan and the figures"
    return None
