"""A plan's asks in order, written down once: what a run consists of is read here by everybody and nowhere else.

Consent refuses any other ask, sums are formed in the modes given here, the aggregator carries out these stages, and
whoever verifies a certificate holds it against them. Reading a programme loads no model; only what an ask costs needs
the family's own code, which is loaded when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from synth.errors import ProtocolError
from synth.interface import Ask, Combine, Inquiry
from synth.linkage.settings import ASKS
from synth.plan import Mode, Plan
from synth.privacy.events import Event
from synth.synthesizers.registry import build

Phase = Literal["alignment", "statistics", "training", "assessment"]


@dataclass(frozen=True)
class Step:
    """One planned ask."""

    phase: Phase
    number: int  # within its phase
    combine: Combine
    mode: Mode  # how its answers travel


@dataclass(frozen=True)
class Stage:
    """The asks of one phase, which are all combined alike."""

    phase: Phase
    first: int  # of its asks, counted over the whole run
    asks: int
    combine: Combine
    mode: Mode

    @property
    def end(self) -> int:
        """The first ask after it."""
        return self.first + self.asks


@dataclass(frozen=True)
class Programme:
    """The stages of a run in order."""

    stages: tuple[Stage, ...]

    @property
    def asks(self) -> int:
        return self.stages[-1].end

    @property
    def modes(self) -> set[Mode]:
        return {stage.mode for stage in self.stages}

    def __iter__(self) -> Iterator[Step]:
        for stage in self.stages:
            for number in range(stage.asks):
                yield Step(stage.phase, number, stage.combine, stage.mode)

    def step(self, sequence: int) -> Step | None:
        """Ask number `sequence` of the run; None: there is no such ask."""
        for stage in self.stages:
            if stage.first <= sequence < stage.end:
                return Step(stage.phase, sequence - stage.first, stage.combine, stage.mode)
        return None

    def stage(self, phase: object) -> Stage:
        for stage in self.stages:
            if stage.phase == phase:
                return stage
        known = ", ".join(stage.phase for stage in self.stages)
        raise ProtocolError(f"an ask must say its phase, one of the plan's: {known}")


def programme(plan: Plan) -> Programme:
    """Statistics, training and, where the plan has one, assessment; alignment first where parties hold columns of the
    same people. Gathered answers are seen one by one: plain."""
    family, modes = plan.family, plan.secure_sum
    counted: tuple[Combine, Mode] = ("gather", "plain") if family.gathers else ("sum", modes.statistics)
    alignment = [Stage("alignment", 0, ASKS, "gather", "plain")] if plan.partition == "columns" else []
    statistics = Stage("statistics", ASKS * len(alignment), family.statistics_asks, *counted)
    training = Stage("training", statistics.end, family.asks, "sum", modes.updates)
    if plan.assessment is None:
        return Programme((*alignment, statistics, training))
    return Programme((*alignment, statistics, training, Stage("assessment", training.end, 1, "sum", modes.statistics)))


def mode_of(plan: Plan, ask: Ask) -> Mode:
    """How the answers to this ask travel."""
    stage = programme(plan).stage(ask.options.get("phase"))
    return "plain" if ask.combine == "gather" else stage.mode


def only_plain(plan: Plan) -> bool:
    """Nothing is summed in secret: no keys between the parties are needed."""
    return programme(plan).modes == {"plain"}


def inquiries(plan: Plan) -> dict[str, Inquiry]:
    """What asks and answers in every phase of the plan's programme."""
    from synth.assessment.inquiry import AssessmentInquiry  # these load numerical code that consent does without
    from synth.linkage.inquiry import AlignmentInquiry
    from synth.statistics.mixture_rounds import statistics_inquiry

    built = {"alignment": AlignmentInquiry, "statistics": statistics_inquiry, "training": build}
    built |= {"assessment": AssessmentInquiry}
    return {stage.phase: built[stage.phase](plan) for stage in programme(plan).stages}


def fitted_on(plan: Plan) -> tuple[Inquiry, Inquiry]:
    """What every synthesizer is made from: the statistics and its own training."""
    asking = inquiries(plan)
    return asking["statistics"], asking["training"]


def costs(plan: Plan, party: str) -> list[list[Event]]:
    """What each ask of the programme costs the party, in order."""
    return [events for inquiry in inquiries(plan).values() for events in inquiry.planned_costs(party)]


def whole_cost(plan: Plan, party: str) -> list[Event]:
    """All that the plan will ever spend at the party."""
    return [event for events in costs(plan, party) for event in events]
