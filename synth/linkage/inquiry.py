"""The first questions of a plan by columns: whose rows are whose, before anything is counted.

    ask 0: who is there?     ─► keyed hashes of everybody's people (or, presorted, how many there are)
    ask 1: these take part   ─► every party's seal under the order of its rows, with a key the aggregator lacks
    ask 2: everybody's seals ─► each party compares, and answers nothing more unless all are the same

Rows in another order give tables whose totals are right and in which no dependence is left, so nothing would show it
afterwards. What the aggregator sees of people is how many are at which parties, and that is one noisy histogram: every
party adds people that do not exist. The hashes are uniform to whoever lacks the key, and their order is their own.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from synth.budget import alignment_event
from synth.encoding.rows import Rows
from synth.errors import ProtocolError
from synth.interface import Answer, Array, Arrays, Ask, Inquiry, Sum
from synth.linkage.linked import LinkedRows, Tokens, room
from synth.linkage.settings import ASKS
from synth.messages.asked import Form, checked, exactly, require_names, whole_numbers
from synth.plan import Plan
from synth.privacy.events import Event, Unaccounted
from synth.privacy.noise import NoiseSource

SEAL_BYTES = 32
SLACK = 4  # a party may hold so many times the people it declares


class AlignmentInquiry(Inquiry):
    """`people` is known after the first ask: who takes part, in order; or how many places there are."""

    phase = "alignment"

    def __init__(self, plan: Plan) -> None:
        if plan.linkage is None:
            raise ProtocolError("only a plan by columns aligns rows")
        self.plan, self.presorted = plan, plan.linkage.alignment == "presorted"
        self.event = alignment_event(plan)
        self.people: Array | None = None
        self.seals: Array | None = None

    # Aggregator

    def ask(self, number: int) -> Ask | None:
        if number >= ASKS:
            return None
        arrays: Arrays = {}
        if number > 0 and self.people is not None:
            arrays = {"people": self.people} if number == 1 else {"seals": self._known_seals()}
        return Ask(arrays, {"phase": self.phase, "round": number}, combine="gather")

    def absorb(self, total: Sum) -> None:
        answers = [total.by_party[name].arrays for name in self.plan.holders]
        if self.people is None:
            self.people = self._together(answers)
        elif self.seals is None:
            self.seals = np.stack([answer["seal"] for answer in answers]).astype(np.uint8)

    def places(self) -> int:
        """Rows of every party's table, those that hold nobody included."""
        if self.people is None:
            raise ProtocolError("rows were used before they were aligned")
        return int(self.people[0]) if self.presorted else len(self.people)

    def state(self) -> Arrays:
        found = {"people": self.people, "seals": self.seals}
        return {name: array for name, array in found.items() if array is not None}

    def restore(self, state: Arrays) -> None:
        self.people, self.seals = state.get("people"), state.get("seals")

    def _together(self, answers: list[Arrays]) -> Array:
        """Whoever is at all parties, by hash; or as many places as the first party says."""
        if self.presorted:
            return np.array([int(answers[0]["people"][0])])
        lists = [answer["tokens"].astype(np.uint64) for answer in answers]
        return reduce(lambda some, others: np.intersect1d(some, others, assume_unique=True), lists)

    def _known_seals(self) -> Array:
        if self.seals is None:
            raise ProtocolError("seals were asked about before anybody sent one")
        return self.seals

    # Party

    def cost(self, ask: Ask, party: str) -> list[Event]:
        return self.planned_costs(party)[self._checked(ask)]

    def planned_costs(self, party: str) -> list[list[Event]]:
        return [[self.event or Unaccounted("how many people are at which parties, exactly")], [], []]

    def answer(self, ask: Ask, party: str, data: Rows, local: Arrays, noise: NoiseSource) -> tuple[Answer, Arrays]:
        if not isinstance(data, LinkedRows):
            raise ProtocolError("rows without a key column cannot be aligned")
        number, variance = self._checked(ask), self.event.variance if self.event else None
        return Answer(self._answered(number, ask, data, noise, variance), self.plan.share(party)), local

    def _answered(self, number: int, ask: Ask, data: LinkedRows, noise: NoiseSource, variance: float | None) -> Arrays:
        if number == 0 and self.presorted:
            return {"people": np.array([data.people(noise, variance)])}
        if number == 0:
            return {"tokens": data.tokens(noise, variance)}
        if number == 1:
            kept = ask.arrays["people"]
            return {"seal": np.frombuffer(data.match(int(kept[0]) if self.presorted else kept), np.uint8)}
        data.agree({name: seal.tobytes() for name, seal in zip(self.plan.holders, ask.arrays["seals"], strict=True)})
        return {"agreed": np.zeros(1, dtype=np.int64)}

    def _checked(self, ask: Ask) -> int:
        """Which of the questions it is; refuses what could not be answered."""
        (number,) = whole_numbers(ask, self.phase, "round")
        if number == 0:
            exactly(ask.arrays, {})
        elif number == 1:
            require_names(ask.arrays, ["people"])
            self._check_people(ask.arrays["people"])
        elif number == 2:
            exactly(ask.arrays, {"seals": Form((len(self.plan.holders), SEAL_BYTES), np.uint8)})
        else:
            raise ProtocolError("an ask is none of those by which rows are aligned")
        return number

    def _check_people(self, people: Array) -> None:
        most = SLACK * self.plan.declared_rows + 2 * room(self.event.variance if self.event else None)
        if self.presorted:
            places = int(checked({"people": people}, "people", Form((1,), np.int64))[0])
        else:
            tokens: Tokens = checked({"people": people}, "people", Form((people.size,), np.uint64))
            places = len(tokens)
            if (tokens[1:] <= tokens[:-1]).any():
                raise ProtocolError("people are not listed once each and in order")
        if not 0 <= places <= most:
            raise ProtocolError(f"more people would take part than the plan has room for ({most})")
