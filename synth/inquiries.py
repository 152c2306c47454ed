"""Everything a plan consists of asking, phase by phase, in order: the one list that both sides and consent go by."""

from __future__ import annotations

from synth.assessment.inquiry import AssessmentInquiry
from synth.interface import Inquiry
from synth.mixture_rounds import statistics_inquiry
from synth.plan import Plan
from synth.privacy.events import Event
from synth.synthesizers import build


def inquiries(plan: Plan) -> dict[str, Inquiry]:
    """The inquiry of every phase of `plan.planned_asks`."""
    found: dict[str, Inquiry] = {"statistics": statistics_inquiry(plan), "training": build(plan)}
    return found | ({"assessment": AssessmentInquiry(plan)} if plan.assessment else {})


def whole_cost(plan: Plan, party: str) -> list[Event]:
    """All that the plan will ever spend at the party."""
    return [event for inquiry in inquiries(plan).values() for event in inquiry.whole_cost(party)]
