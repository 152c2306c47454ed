"""A federation without messages: the interface alone, for tests of what the interface promises."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from synth.encoding.records import Records
from synth.interface import Answer, Arrays, Ask, Inquiry, Sum, Synthesizer
from synth.plan import Plan
from synth.privacy.events import Event
from synth.privacy.noise import seeded_source
from synth.statistics.histograms import Statistics
from synth.statistics.mixture_rounds import statistics_inquiry
from synth.synthesizers.registry import build


@dataclass
class Inline:
    """Parties' rows, their local arrays, and everything that was asked, answered and charged."""

    plan: Plan
    data: dict[str, Records]
    seed: int
    local: dict[str, Arrays] = field(default_factory=lambda: defaultdict(dict))
    charged: dict[str, list[Event]] = field(default_factory=lambda: defaultdict(list))
    asks: list[Ask] = field(default_factory=list)
    answers: list[dict[str, Answer]] = field(default_factory=list)

    def drive(self, inquiry: Inquiry, most: int = 10_000) -> None:
        number = 0
        while number < most and (ask := inquiry.ask(number)) is not None:
            inquiry.absorb(self.total(inquiry, ask))
            number += 1

    def total(self, inquiry: Inquiry, ask: Ask) -> Sum:
        answers = {}
        for party, records in self.data.items():
            self.charged[party] += inquiry.cost(ask, party)
            noise = seeded_source(self.seed, party, len(self.asks))
            answers[party], self.local[party] = inquiry.answer(ask, party, records, self.local[party], noise)
        self.asks.append(ask)
        self.answers.append(answers)
        return Sum.of(answers, ask.combine)


def statistics_of(federation: Inline) -> Statistics:
    inquiry = statistics_inquiry(federation.plan)
    federation.drive(inquiry)
    return inquiry.result()


def trained(federation: Inline) -> Synthesizer:
    """Statistics, then every ask of the plan's synthesizer."""
    synthesizer = build(federation.plan)
    synthesizer.begin(statistics_of(federation), federation.seed)
    federation.drive(synthesizer)
    return synthesizer
