"""Sums of the parties' answers, formed without seeing a summand (plain mode excepted, and then the plan says so)."""

from __future__ import annotations

from aggregator.exchange import Exchange
from synth import wire
from synth.errors import MissingParties
from synth.interface import Answer, Ask, Scalar
from synth.plan import Plan
from synth.wire import Envelope


class SecureSum:
    """One ask out, one sum (or the gathered answers) back."""

    def __init__(self, plan: Plan, run: str, exchange: Exchange) -> None:
        self.plan, self.run, self.exchange = plan, run, exchange
        self.parties = [party.name for party in plan.parties]

    def total(self, ask: Ask, sequence: int) -> Answer | dict[str, Answer]:
        header = self.header() | {"sequence": sequence}
        packed = {party: wire.pack_ask(ask, party) for party in self.parties}
        envelopes = {party: Envelope(e.arrays, e.options | header) for party, e in packed.items()}
        replies = self.exchange("ask", envelopes)
        if replies.lost:
            raise MissingParties(f"no answer from {', '.join(replies.lost)}; resume when they are back")
        answers = {party: wire.unpack_answer(envelope) for party, envelope in replies.received.items()}
        return answers if ask.combine == "gather" else added(list(answers.values()))

    def header(self) -> dict[str, Scalar]:
        return {"run": self.run, "plan": self.plan.digest()}


def added(answers: list[Answer]) -> Answer:
    names = answers[0].arrays
    arrays = {name: sum(answer.arrays[name] for answer in answers) for name in names}
    return Answer(arrays, sum(answer.weight for answer in answers))
