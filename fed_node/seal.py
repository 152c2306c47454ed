"""How an answer leaves: plain, masked or encrypted, as the plan demands."""

from __future__ import annotations

from pathlib import Path

from synth import wire
from synth.interface import Answer, Ask
from synth.plan import Plan
from synth.wire import Envelope


class Seal:
    """The keys of one party in one run."""

    def __init__(self, plan: Plan, party: str, run: str, identity: Path, peers: dict[str, str]) -> None:
        self.plan, self.party, self.run = plan, party, run

    def hello(self, envelope: Envelope) -> Envelope:
        return Envelope({}, {"party": self.party})

    def keys(self, envelope: Envelope) -> Envelope:
        return Envelope()

    def seal(self, answer: Answer, ask: Ask, envelope: Envelope) -> Envelope:
        return wire.pack_answer(answer)

    def open(self, envelope: Envelope) -> Envelope:
        return Envelope()

    def signed(self, text: str) -> Envelope:
        return Envelope({}, {"statement": text})
